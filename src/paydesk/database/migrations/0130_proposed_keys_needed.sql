-- As for the other columns that hold sealed values: under which keys do they rest?
-- outside a transaction
create index concurrently if not exists profile_change_sealed_under on profile_change (vault_key_id)
    where status = 'waiting' and iban_sealed is not null;
