-- oldest code: 150
-- outside a transaction
-- Serves the mails that ask for a card before a trial without one ends.
create index concurrently if not exists subscription_change_to_ask on subscription_change (merchant_id, live, due_at)
    where state = 'open' and asked_by = 'no_card' and notice_at is null;
