-- oldest code: 150
-- outside a transaction
create index concurrently if not exists payment_by_other_card on payment (merchant_id, live, card_id)
    where not renewal and people_of is distinct from attempt_id;
