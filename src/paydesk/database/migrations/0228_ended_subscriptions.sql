-- oldest code: 150
-- outside a transaction
-- Serves the look for what acquirers keep for subscriptions that have ended.
create index concurrently if not exists subscription_kept on subscription (merchant_id, id)
    where network_reference <> '' and date_next is null and state in ('Cancelled', 'Expired');
