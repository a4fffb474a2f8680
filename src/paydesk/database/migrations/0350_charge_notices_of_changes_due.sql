-- oldest code: 150
-- outside a transaction
create index concurrently if not exists subscription_change_to_announce on subscription_change (merchant_id, live, due_at)
    where state = 'open' and type = 'change' and notice_at is null;
