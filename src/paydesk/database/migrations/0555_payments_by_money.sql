-- oldest code: 150
-- outside a transaction
-- Serves settlement, the release of reserves, and the calendar of the reserve of what has not settled. An entry is made
-- with the payment, and stays when it is paid.
create index concurrently if not exists payment_by_money
    on payment (merchant_id, live, money_part(settled_at), funds_look_at) where funds_look_at is not null;
