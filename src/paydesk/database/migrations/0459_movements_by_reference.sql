-- oldest code: 150
-- outside a transaction
-- Serves the operator's search for an acquirer's own reference of a capture, a void or a refund.
create index concurrently if not exists movement_by_reference on movement (acquirer_reference)
    where acquirer_reference <> '';
