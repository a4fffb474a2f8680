-- Subscriptions: packages with their versions, what was agreed, where each stands, and cards that customers replace.

create sequence subscription_package_id_seq;
create table subscription_package (
    merchant_id bigint not null references merchant (id),
    live boolean not null,
    id bigint not null default nextval('subscription_package_id_seq'),
    sku_id text not null,
    subscriptions_count bigint not null default 0,
    created_at timestamptz not null,
    primary key (merchant_id, id)
) with (fillfactor = 50);
create unique index subscription_package_by_sku on subscription_package (merchant_id, live, sku_id);

create sequence package_version_id_seq;
create table package_version (
    merchant_id bigint not null,
    live boolean not null,
    id bigint not null default nextval('package_version_id_seq'),
    package_id bigint not null,
    name text not null,
    currency text not null,
    price numeric(20, 4) not null check (price > 0),
    period_length integer not null check (period_length > 0),
    period_unit text not null check (period_unit in ('day', 'week', 'month', 'year')),
    trial_price numeric(20, 4) not null default 0 check (trial_price >= 0),
    trial_length integer not null default 0,
    trial_unit text not null default 'day' check (trial_unit in ('day', 'week', 'month', 'year')),
    payment_limit integer not null default 0 check (payment_limit >= 0),
    created_at timestamptz not null,
    subscriptions_count bigint not null default 0,
    primary key (merchant_id, id),
    foreign key (merchant_id, package_id) references subscription_package (merchant_id, id)
);
comment on table package_version is 'the terms of a package; a running subscription keeps its version';
comment on column package_version.trial_length is '0 without a trial';
comment on column package_version.subscriptions_count is 'how many subscriptions were ever taken out on these terms';
create unique index package_version_by_terms on package_version (merchant_id, live, package_id, price, currency,
    period_length, period_unit, trial_price, trial_length, trial_unit, payment_limit, name);

create view package_terms as
select v.merchant_id, v.live, v.id as package_version_id, v.package_id, k.sku_id, k.subscriptions_count,
       v.name as package_name, v.currency, v.price, v.period_length, v.period_unit, v.trial_price, v.trial_length,
       v.trial_unit, v.payment_limit
  from package_version v
  join subscription_package k on k.merchant_id = v.merchant_id and k.live = v.live and k.id = v.package_id;

create sequence subscription_id_seq increment by 10 minvalue 8 maxvalue 9007199254740988 start with 8;
comment on sequence subscription_id_seq is 'by tens, ending in 8, below 2^53: see paydesk/core/octal.py';
create table subscription (
    merchant_id bigint not null,
    live boolean not null,
    id bigint not null default nextval('subscription_id_seq'),
    state text not null check (state in ('Trial', 'Active', 'Cancelled', 'Expired')),
    package_version_id bigint not null,
    init_payment_id bigint not null,
    init_merchant_order_id text not null,
    customer_id bigint not null,
    card_id bigint not null,
    acquirer text not null,
    network_reference text not null,
    terms_agreed text not null,
    portal_token text,
    sign_version text not null,
    key_id bigint not null,
    pingback_url text,
    time_zone text not null,
    anchor timestamptz not null,
    next_period integer not null,
    date_next timestamptz,
    charging_attempt_id bigint,
    failures integer not null default 0,
    counter integer not null default 0,
    paid_number_counter integer not null default 0,
    date_start timestamptz not null,
    date_active timestamptz,
    date_paid timestamptz,
    date_end timestamptz,
    date_expired timestamptz,
    date_cancelled timestamptz,
    date_stopped timestamptz,
    cancelled_by text not null default '',
    revision integer not null default 1,
    created_at timestamptz not null,
    skipped integer default 0 check (skipped >= 0),
    portal_seed text,
    portal_token_hash bytea,
    primary key (merchant_id, id),
    foreign key (merchant_id, package_version_id) references package_version (merchant_id, id),
    foreign key (merchant_id, customer_id) references customer (merchant_id, id),
    foreign key (merchant_id, card_id) references card (merchant_id, id),
    check (date_next is null or state in ('Trial', 'Active'))
) with (fillfactor = 70);
comment on column subscription.portal_token is 'the link of an older version in clear, until it is hidden';
comment on column subscription.anchor is 'when period 1 begins; every later date is counted from it';
comment on column subscription.next_period is
    'the period that is charged next; the payments of a subscription have no gap before it';
comment on column subscription.charging_attempt_id is 'the charge in flight: there is never more than one';
comment on column subscription.revision is 'grows with every change: what was reported is what was written';
comment on column subscription.skipped is
    'periods that fell due while nothing could be charged, and never were: by so many the calendar has moved '
    'on since the anchor';
comment on column subscription.portal_seed is 'random; with the deployment''s secret key it makes the portal''s link';
comment on column subscription.portal_token_hash is
    'keyed HMAC of the link that an older version made, which goes on working';
create unique index subscription_by_init_payment on subscription (merchant_id, live, init_payment_id);
create index subscription_by_time on subscription (merchant_id, live, created_at, id);
-- Serves the billing run's claim: merchant by merchant, oldest first.
create index subscription_due on subscription (merchant_id, live, date_next)
    where date_next is not null and charging_attempt_id is null;
-- Serves the expiry of subscriptions whose payments are all made.
create index subscription_ending on subscription (date_end) where state = 'Active' and date_next is null;
-- The same for sides whose test clock runs ahead.
create index subscription_ending_by_side on subscription (merchant_id, live, date_end)
    where state = 'Active' and date_next is null;
-- Most subscriptions are active, and each charge writes their row twice: the index by time serves those.
create index subscription_by_state on subscription (merchant_id, live, state, created_at, id) where state <> 'Active';
-- Serves the mails about renewals that failed: the few that are being tried again.
create index subscription_failing on subscription (merchant_id, id)
    where failures > 0 and state in ('Trial', 'Active');
-- Serve the links that older versions made, in clear or by their hash; rows of now have none and stand in neither.
create unique index subscription_by_old_token on subscription (merchant_id, portal_token)
    where portal_token is not null;
create unique index subscription_by_token_hash
    on subscription (merchant_id, portal_token_hash) where portal_token_hash is not null;

create view subscription_whole as
select s.merchant_id, s.live, s.id, s.state, s.init_payment_id, s.init_merchant_order_id, s.time_zone, s.anchor,
       s.next_period, s.date_next, s.date_start, s.created_at, s.failures, s.counter, s.paid_number_counter,
       s.date_active, s.date_paid, s.date_end, s.date_expired, s.date_cancelled, s.date_stopped, s.cancelled_by,
       s.revision, s.charging_attempt_id, s.portal_token, s.terms_agreed, s.card_id, s.customer_id, s.acquirer,
       s.network_reference, s.sign_version, s.key_id, s.pingback_url, u.email,
       t.package_version_id, t.package_id, t.sku_id, t.subscriptions_count, t.package_name, t.currency, t.price,
       t.period_length, t.period_unit, t.trial_price, t.trial_length, t.trial_unit, t.payment_limit,
       coalesce(s.skipped, 0) as skipped, s.portal_seed
  from subscription s
  join package_terms t
    on t.merchant_id = s.merchant_id and t.live = s.live and t.package_version_id = s.package_version_id
  join customer u on u.merchant_id = s.merchant_id and u.live = s.live and u.id = s.customer_id;

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
comment on table card_change is
    'checks of new cards for 0: no money ever moves here; all times are real ones, never a test clock''s';
comment on column card_change.not_after is
    'the acquirer refuses the key from then on, so that "not found" becomes final';
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
create index card_change_by_card on card_change (merchant_id, live, card_id);
