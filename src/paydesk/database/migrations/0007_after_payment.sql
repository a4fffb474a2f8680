-- After the payment: captures, voids and refunds; deliveries; chargebacks; the way of the money to the merchant.

-- What gives money back is named by one sequence, since merchants tell refunds and chargebacks apart by reference_id.
create sequence movement_id_seq;
create sequence delivery_id_seq;
create sequence payout_id_seq;

alter table merchant
    add column settlement_days integer not null default 7 check (settlement_days between 0 and 365),
    add column reserve_days integer not null default 180 check (reserve_days between 0 and 3650),
    add column muted_events text[] not null default '{}';
comment on column merchant.settlement_days is 'days from capture until pending money becomes available';
comment on column merchant.reserve_days is 'days from capture until the rolling reserve is released';
comment on column merchant.muted_events is 'pingback types beyond the spec''s three that the account does not want';

alter table fee_plan
    add column fees_returned boolean not null default false,
    add column chargeback_fee numeric(20, 4) not null default 15 check (chargeback_fee >= 0);
comment on column fee_plan.fees_returned is 'whether a refund gives the merchant its share of the fees back';

alter table payment drop constraint payment_state_check;
alter table payment
    add constraint payment_state_check check (state in (
        'processing', 'challenged', 'declined', 'authorized', 'captured', 'voided',
        'partially_refunded', 'refunded', 'charged_back')),
    add column revision integer not null default 0,
    add column moving_id bigint,
    add column ship_by timestamptz,
    add column shipping_due_at timestamptz,
    add column captured_at timestamptz,
    add column refunded numeric(20, 4) not null default 0 check (refunded >= 0),
    add column refunding numeric(20, 4) not null default 0 check (refunding >= 0),
    add column charged_back numeric(20, 4) not null default 0 check (charged_back >= 0),
    add column pending_taken numeric(20, 4) not null default 0,
    add column reserve_taken numeric(20, 4) not null default 0,
    add column fees_taken numeric(20, 4) not null default 0,
    add column settled_at timestamptz,
    add column reserve_released_at timestamptz,
    add column funds_due_at timestamptz,
    add check (refunded + refunding <= amount),
    add check (refunded + charged_back <= amount);
comment on column payment.revision is 'grows with every change after the payment: what was reported is what was written';
comment on column payment.moving_id is 'the capture or void in progress: there is never more than one';
comment on column payment.ship_by is 'an authorization that is not shipped by then is voided';
comment on column payment.shipping_due_at is 'when the worker next looks at an authorization: to remind, then to void';
comment on column payment.refunding is 'what refunds in progress have reserved';
comment on column payment.pending_taken is 'what refunds and chargebacks took of its net before it was settled';
comment on column payment.reserve_taken is 'what refunds and chargebacks took of its reserve before it was released';
comment on column payment.fees_taken is 'what refunds gave back of its fees';
comment on column payment.funds_due_at is 'when the next part of its money becomes available: the net, then the reserve';
-- Serves the worker's looks at authorizations: one merchant's side after the other.
create index payment_shipping_due on payment (merchant_id, live, shipping_due_at) where shipping_due_at is not null;
-- Serves settlement and the release of reserves.
create index payment_funds_due on payment (merchant_id, live, funds_due_at) where funds_due_at is not null;

update payment
   set captured_at = paid_at, funds_due_at = paid_at + interval '7 days'
 where state = 'captured' and amount > 0;

create table movement (
    merchant_id bigint not null,
    live boolean not null,
    id bigint not null default nextval('movement_id_seq'),
    payment_id bigint not null,
    kind text not null check (kind in ('capture', 'void', 'refund')),
    state text not null check (state in ('processing', 'done', 'refused')),
    amount numeric(20, 4) not null check (amount > 0),
    currency text not null,
    idempotency_key text not null,
    acquirer text not null,
    acquirer_reference text not null default '',
    requested_by text not null,
    request_key text,
    refusal text not null default '',
    muted boolean not null default false,
    created_at timestamptz not null,
    finished_at timestamptz,
    lookups integer not null default 0,
    lookup_at timestamptz,
    leased_until timestamptz,
    alerted_at timestamptz,
    primary key (merchant_id, id),
    foreign key (merchant_id, payment_id) references payment (merchant_id, id),
    check ((state = 'processing') = (lookup_at is not null)),
    check ((state = 'processing') = (finished_at is null))
) with (fillfactor = 80);
comment on table movement is 'money moved after the authorization: a capture, a void or a refund';
comment on column movement.muted is 'the account did not want to be told of it';
comment on column movement.request_key is 'the caller''s Idempotency-Key: one key is one movement';
create unique index movement_by_key on movement (merchant_id, idempotency_key);
create unique index movement_by_request on movement (merchant_id, live, request_key) where request_key is not null;
create index movement_by_payment on movement (merchant_id, live, payment_id);
create index movement_by_time on movement (merchant_id, live, created_at, id);
-- Serves the janitor's claim.
create index movement_to_look_up on movement (lookup_at) where lookup_at is not null;
-- Capture and void exclude each other while one is in progress.
create unique index movement_of_authorization on movement (merchant_id, payment_id)
    where kind in ('capture', 'void') and state = 'processing';

create table chargeback (
    merchant_id bigint not null,
    live boolean not null,
    id bigint not null default nextval('movement_id_seq'),
    payment_id bigint not null,
    state text not null check (state in ('open', 'won', 'lost')),
    acquirer text not null,
    acquirer_reference text not null,
    amount numeric(20, 4) not null check (amount > 0),
    currency text not null,
    fee numeric(20, 4) not null check (fee >= 0),
    reason text not null,
    evidence text not null default '',
    evidence_at timestamptz,
    muted text[] not null default '{}',
    opened_at timestamptz not null,
    closed_at timestamptz,
    primary key (merchant_id, id),
    foreign key (merchant_id, payment_id) references payment (merchant_id, id),
    check ((state = 'open') = (closed_at is null))
);
comment on column chargeback.muted is 'what the account did not want to be told of it';
create unique index chargeback_by_reference on chargeback (merchant_id, live, acquirer, acquirer_reference);
create index chargeback_by_payment on chargeback (merchant_id, live, payment_id);
-- Serves the look for subscriptions that a chargeback ends.
create index chargeback_open on chargeback (merchant_id, live, payment_id) where state = 'open';
create index chargeback_by_time on chargeback (merchant_id, live, opened_at, id);

-- How far each acquirer's disputes have been read; one worker reads at a time.
create table dispute_reading (
    acquirer text primary key,
    place text not null default '',
    read_at timestamptz,
    leased_until timestamptz
);

create table delivery (
    merchant_id bigint not null,
    live boolean not null,
    id bigint not null default nextval('delivery_id_seq'),
    payment_id bigint not null,
    status text not null check (status in ('order_placed', 'order_shipped', 'delivered')),
    type text not null check (type in ('physical', 'digital')),
    carrier text not null default '',
    tracking_id text not null default '',
    tracking_url text not null default '',
    refundable boolean,
    notify_user boolean,
    product_description text not null default '',
    details text not null default '',
    reason text not null default '',
    estimated_at timestamptz,
    attachments jsonb not null default '[]',
    shipping_address jsonb,
    digest bytea not null,
    created_at timestamptz not null,
    primary key (merchant_id, id),
    foreign key (merchant_id, payment_id) references payment (merchant_id, id)
);
comment on column delivery.shipping_address is 'personal data; null once erased';
-- The same confirmation twice is one delivery.
create unique index delivery_by_digest on delivery (merchant_id, live, payment_id, digest);

create table payout (
    merchant_id bigint not null references merchant (id),
    live boolean not null,
    id bigint not null default nextval('payout_id_seq'),
    currency text not null,
    amount numeric(20, 4) not null check (amount > 0),
    reference text not null,
    recorded_by text not null,
    at timestamptz not null,
    primary key (merchant_id, id)
);
create index payout_by_time on payout (merchant_id, live, at, id);

alter table ledger_entry drop constraint ledger_entry_kind_check;
alter table ledger_entry drop constraint ledger_entry_account_check;
alter table ledger_entry
    alter column payment_id drop not null,
    add column payout_id bigint,
    add constraint ledger_entry_kind_check check (kind in (
        'capture', 'settlement', 'reserve_release', 'refund', 'chargeback', 'chargeback_fee', 'chargeback_reversal',
        'payout')),
    add constraint ledger_entry_account_check check (account in (
        'acquirer', 'pending', 'available', 'reserve', 'fees', 'bank')),
    add check ((payment_id is null) = (kind = 'payout') and (payout_id is null) = (kind <> 'payout'));
-- Serves statements of a period and balances; a posting's entries have the same time.
create index ledger_entry_by_time on ledger_entry (merchant_id, live, at, posting_id);

alter table pingback add column reversal_id bigint;
comment on column pingback.reversal_id is 'the refund, void or chargeback that it tells of';
-- Each is told once.
create unique index pingback_of_reversal on pingback (merchant_id, live, reversal_id, event)
    where reversal_id is not null;

create table api_call (
    merchant_id bigint not null,
    live boolean not null,
    request_key text not null,
    request_digest bytea not null,
    status integer,
    answer text,
    created_at timestamptz not null,
    leased_until timestamptz,
    primary key (merchant_id, live, request_key)
);
comment on table api_call is 'first answers to calls with an Idempotency-Key, kept for 7 days';
create index api_call_by_time on api_call (created_at);

-- Serves the list of pingbacks about a payment: those of its refunds and chargebacks.
create index pingback_of_reversed_payment on pingback (merchant_id, live, payment_id) where reversal_id is not null;

-- The pingbacks about payments, about what was given back of them, and about the ends of the subscriptions that these
-- payments began.
create or replace function pingbacks_about(merchant bigint, side boolean, payments bigint[]) returns setof bigint
language sql stable as $$
    select b.id
      from pingback b
     where b.merchant_id = merchant and b.live = side and b.event = 'payment' and b.payment_id = any(payments)
     union all
    select b.id
      from pingback b
     where b.merchant_id = merchant and b.live = side and b.reversal_id is not null and b.payment_id = any(payments)
     union all
    select b.id
      from subscription s
      join pingback b on b.merchant_id = s.merchant_id and b.live = s.live and b.subscription_id = s.id
     where s.merchant_id = merchant and s.live = side and s.init_payment_id = any(payments)
       and b.event in ('subscription_cancelled', 'subscription_stopped', 'subscription_expired')
$$;

create or replace view payment_whole as
select p.merchant_id, p.live, p.id, p.merchant_order_id, p.state, p.amount, p.currency, p.net, p.reserve, p.fees,
       p.subscription_id, p.created_at, p.paid_at, u.first_name, u.last_name, u.username, u.country, u.email,
       c.brand, c.last4, a.decline_reason, p.refunded
  from payment p
  join customer u on u.merchant_id = p.merchant_id and u.live = p.live and u.id = p.customer_id
  join card c on c.merchant_id = p.merchant_id and c.live = p.live and c.id = p.card_id
  join payment_attempt a on a.merchant_id = p.merchant_id and a.live = p.live and a.id = p.attempt_id;
