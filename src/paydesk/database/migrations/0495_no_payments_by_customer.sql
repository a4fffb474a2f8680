-- oldest code: 150
-- outside a transaction
-- What code of before looks up by it without these functions is for erasure alone, and waits a little.
drop index concurrently if exists payment_by_customer;
