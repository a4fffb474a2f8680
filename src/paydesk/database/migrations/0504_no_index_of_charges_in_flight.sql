-- oldest code: 150
-- outside a transaction
-- Code of before finds the same rows by the two indexes that stand in their place.
drop index concurrently if exists subscription_due;
drop index concurrently if exists subscription_to_announce;
