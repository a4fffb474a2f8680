-- A start asks under which vault keys anything rests: one probe per key and column, however many rows there are.
-- outside a transaction
create index concurrently if not exists merchant_key_sealed_under on merchant_key (vault_key_id);
create index concurrently if not exists card_sealed_under on card (vault_key_id) where number_sealed is not null;
create index concurrently if not exists person_sealed_under on person (vault_key_id) where totp_sealed is not null;
create index concurrently if not exists business_profile_sealed_under on business_profile (vault_key_id)
    where iban_sealed is not null;
create index concurrently if not exists mail_sealed_under on mail ((facts #>> '{token,vault_key_id}'))
    where facts ? 'token';
