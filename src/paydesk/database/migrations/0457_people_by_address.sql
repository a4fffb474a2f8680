-- oldest code: 150
-- outside a transaction
-- Serves the operator's search: people whose address begins so.
create index concurrently if not exists person_by_address on person (lower(email) text_pattern_ops, id);
