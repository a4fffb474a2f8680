-- oldest code: 150
-- outside a transaction
-- Serves whoever has nothing but what a purchase is marked with at its acquirer: of which merchant a dispute is that an
-- account tells of which cells share, and a notice of a page that was paid. A tag never changes, so that no update of a
-- merchant writes into it.
create index concurrently if not exists merchant_by_tag on merchant (key_tag);
