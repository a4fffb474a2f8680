-- Customers replace the card of their subscription: the new one is checked with the bank first.

create sequence card_change_id_seq;

create table card_change (
    merchant_id bigint not null,
    live boolean not null,
    id bigint not null default nextval('card_change_id_seq'),
    subscription_id bigint not null,
    state text not null check (state in ('processing', 'challenged', 'approved', 'declined', 'failed', 'abandoned')),
    idempotency_key text not null,
    acquirer text not null,
    card_id bigint not null,
    client_address text not null,
    not_after timestamptz not null,
    network_reference text not null default '',
    challenge_url text not null default '',
    decline_reason text not null default '',
    created_at timestamptz not null,
    finished_at timestamptz,
    lookups integer not null default 0,
    lookup_at timestamptz,
    leased_until timestamptz,
    alerted_at timestamptz,
    primary key (merchant_id, id),
    -- Test data may be deleted as a whole when a test clock is reset; a change goes with what it belongs to.
    foreign key (merchant_id, subscription_id) references subscription (merchant_id, id) on delete cascade,
    foreign key (merchant_id, card_id) references card (merchant_id, id) on delete cascade
) with (fillfactor = 80);
comment on table card_change is 'checks of new cards for 0: no money ever moves here; all times are real ones, never a test clock''s';
comment on column card_change.not_after is 'the acquirer refuses the key from then on, so that "not found" becomes final';
comment on column card_change.lookup_at is 'when the janitor next asks the acquirer; null once nothing can change';
create unique index card_change_by_key on card_change (merchant_id, idempotency_key);
-- A subscription has one change at a time, whatever number of tabs.
create unique index card_change_open on card_change (merchant_id, live, subscription_id)
    where state in ('processing', 'challenged');
-- Serves the customer's page, which shows the last one.
create index card_change_by_subscription on card_change (merchant_id, live, subscription_id, id);
-- Serves the janitor's claim.
create index card_change_to_look_up on card_change (lookup_at) where lookup_at is not null;
-- Serves the guard against card testing.
create index card_change_declined on card_change (merchant_id, live, client_address, finished_at)
    where state = 'declined';
