-- oldest code: 150
-- outside a transaction
-- Serves the look for what acquirers keep and nobody needs any more.
create index concurrently if not exists card_kept on card (merchant_id, id) where stored_reference <> '' and let_go_at is null;
