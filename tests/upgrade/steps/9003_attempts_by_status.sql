-- oldest code: 150
-- outside a transaction
-- An index of a big table in partitions.
create index concurrently if not exists pingback_attempt_by_status on pingback_attempt (merchant_id, live, status, at);
