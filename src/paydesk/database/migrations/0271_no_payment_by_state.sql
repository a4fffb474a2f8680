-- oldest code: 150
-- outside a transaction
-- Code of before finds payments of a state through their times, more slowly.
drop index concurrently if exists payment_by_state;
