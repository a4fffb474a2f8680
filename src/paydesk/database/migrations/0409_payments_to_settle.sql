-- oldest code: 150
-- outside a transaction
-- Serves the calendar of the reserve: captured money that has not settled, whose reserve stands in no sum yet.
create index concurrently if not exists payment_to_settle on payment (merchant_id, live)
    where funds_due_at is not null and settled_at is null;
