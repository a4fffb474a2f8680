-- oldest code: 150
-- outside a transaction
-- Serves a test clock that looks for the day on which slow methods come to their end.
create index concurrently if not exists payment_attempt_to_be_sure on payment_attempt (merchant_id, live, sure_by)
    where state = 'pending';
