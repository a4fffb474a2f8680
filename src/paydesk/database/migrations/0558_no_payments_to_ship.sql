-- oldest code: 150
-- outside a transaction
-- Code of before lists orders that wait to be shipped by their times, more slowly.
drop index concurrently if exists payment_to_ship;
