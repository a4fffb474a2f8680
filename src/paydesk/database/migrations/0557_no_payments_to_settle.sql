-- oldest code: 150
-- outside a transaction
drop index concurrently if exists payment_to_settle;
