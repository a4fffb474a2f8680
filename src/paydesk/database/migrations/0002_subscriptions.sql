-- Subscriptions: packages with their versions, what was agreed, and the renewals.

create sequence subscription_package_id_seq;
create sequence package_version_id_seq;
create sequence subscription_id_seq;

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
    primary key (merchant_id, id),
    foreign key (merchant_id, package_id) references subscription_package (merchant_id, id)
);
comment on table package_version is 'the terms of a package; a running subscription keeps its version';
comment on column package_version.trial_length is '0 without a trial';
create unique index package_version_by_terms on package_version (merchant_id, live, package_id, price, currency,
    period_length, period_unit, trial_price, trial_length, trial_unit, payment_limit, name);

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
    portal_token text not null,
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
    primary key (merchant_id, id),
    foreign key (merchant_id, package_version_id) references package_version (merchant_id, id),
    foreign key (merchant_id, customer_id) references customer (merchant_id, id),
    foreign key (merchant_id, card_id) references card (merchant_id, id),
    check (date_next is null or state in ('Trial', 'Active'))
) with (fillfactor = 70);
comment on column subscription.anchor is 'when period 1 begins; every later date is counted from it';
comment on column subscription.next_period is 'the period that is charged next; the payments of a subscription have no gap before it';
comment on column subscription.charging_attempt_id is 'the charge in flight: there is never more than one';
comment on column subscription.revision is 'grows with every change: what was reported is what was written';
create unique index subscription_by_token on subscription (merchant_id, portal_token);
create unique index subscription_by_init_payment on subscription (merchant_id, live, init_payment_id);
create index subscription_by_time on subscription (merchant_id, live, created_at);
-- Serves the billing run's claim: merchant by merchant, oldest first.
create index subscription_due on subscription (merchant_id, live, date_next)
    where date_next is not null and charging_attempt_id is null;
-- Serves the expiry of subscriptions whose payments are all made.
create index subscription_ending on subscription (date_end) where state = 'Active' and date_next is null;
-- The same for sides whose test clock runs ahead.
create index subscription_ending_by_side on subscription (merchant_id, live, date_end)
    where state = 'Active' and date_next is null;

alter table checkout
    add column package_version_id bigint,
    add column first_amount numeric(20, 4),
    add column terms_agreed text not null default '',
    add foreign key (merchant_id, package_version_id) references package_version (merchant_id, id);
comment on column checkout.first_amount is 'what is charged at the checkout of a subscription: the trial''s price, or the price';

alter table payment
    add column subscription_id bigint,
    add column period_number integer,
    add column renewal boolean not null default false;
-- A shop's own reference may look like a renewal's; only what is paid at a checkout has an order to itself.
drop index payment_by_order;
create unique index payment_by_order on payment (merchant_id, live, merchant_order_id) where not renewal;
-- Never twice for one period.
create unique index payment_by_period on payment (merchant_id, live, subscription_id, period_number)
    where subscription_id is not null;

alter table card add column refused_as text not null default '';
comment on column card.refused_as is 'a hard decline (stolen, closed): the card is not put to the network again';

alter table pingback add column subscription_id bigint;
-- A subscription ends once, and says so once.
create unique index pingback_of_end on pingback (merchant_id, live, subscription_id)
    where event in ('subscription_cancelled', 'subscription_stopped', 'subscription_expired');

alter table merchant
    add column extra_events text[] not null default '{}',
    add column test_clock interval not null default interval '0';
comment on column merchant.extra_events is 'pingback types beyond the spec''s that the account asks for';
comment on column merchant.test_clock is 'how far the test clock runs ahead of real time';

create view package_terms as
select v.merchant_id, v.live, v.id as package_version_id, v.package_id, k.sku_id, k.subscriptions_count,
       v.name as package_name, v.currency, v.price, v.period_length, v.period_unit, v.trial_price, v.trial_length,
       v.trial_unit, v.payment_limit
  from package_version v
  join subscription_package k on k.merchant_id = v.merchant_id and k.live = v.live and k.id = v.package_id;

create view subscription_whole as
select s.merchant_id, s.live, s.id, s.state, s.init_payment_id, s.init_merchant_order_id, s.time_zone, s.anchor,
       s.next_period, s.date_next, s.date_start, s.created_at, s.failures, s.counter, s.paid_number_counter,
       s.date_active, s.date_paid, s.date_end, s.date_expired, s.date_cancelled, s.date_stopped, s.cancelled_by,
       s.revision, s.charging_attempt_id, s.portal_token, s.terms_agreed, s.card_id, s.customer_id, s.acquirer,
       s.network_reference, s.sign_version, s.key_id, s.pingback_url, u.email,
       t.package_version_id, t.package_id, t.sku_id, t.subscriptions_count, t.package_name, t.currency, t.price,
       t.period_length, t.period_unit, t.trial_price, t.trial_length, t.trial_unit, t.payment_limit
  from subscription s
  join package_terms t
    on t.merchant_id = s.merchant_id and t.live = s.live and t.package_version_id = s.package_version_id
  join customer u on u.merchant_id = s.merchant_id and u.live = s.live and u.id = s.customer_id;
