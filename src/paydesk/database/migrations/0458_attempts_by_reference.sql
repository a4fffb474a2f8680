-- oldest code: 150
-- outside a transaction
-- Serves the operator's search for an acquirer's own reference: of a payment one entry, once the acquirer has answered.
create index concurrently if not exists payment_attempt_by_reference on payment_attempt (acquirer_reference)
    where acquirer_reference <> '';
