-- oldest code: 150
-- outside a transaction
-- Serves the operator's search: people whose name begins so.
create index concurrently if not exists person_by_name on person (lower(name) text_pattern_ops, id);
