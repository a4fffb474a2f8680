-- oldest code: 150
-- outside a transaction
-- Renewals are found through their subscription's first payment, so that this index costs them nothing.
create index concurrently if not exists payment_by_other_customer on payment (merchant_id, live, customer_id)
    where not renewal and people_of is distinct from attempt_id;
