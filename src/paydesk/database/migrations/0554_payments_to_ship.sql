-- oldest code: 150
-- outside a transaction
-- Serves the list of orders that wait to be shipped, soonest first: what is authorized, and nothing else, is to be shipped
-- by some time.
create index concurrently if not exists payment_by_ship_by on payment (merchant_id, live, ship_by, id)
    where ship_by is not null;
