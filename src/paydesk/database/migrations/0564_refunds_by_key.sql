-- oldest code: 150
-- outside a transaction
-- Serves whoever has nothing but an acquirer's key of a refund: that it failed, or which cell has it. Payments are no part of
-- it, so it stays small.
create index concurrently if not exists movement_refund_by_key on movement (idempotency_key) where kind = 'refund';
