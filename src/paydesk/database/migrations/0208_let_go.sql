-- oldest code: 150
-- What acquirers keep of cards is let go of once nobody needs it: replaced ones, and those of subscriptions that have ended.
alter table card add column let_go_at timestamptz;
comment on column card.let_go_at is 'when its acquirer was to let go of what it keeps of it';
