-- once no older code runs
-- outside a transaction
-- Code of before settles by it.
drop index concurrently if exists payment_funds_due;
