-- Payments: checkouts, payments and their attempts, what moves after them, and how merchants find them.

create sequence checkout_id_seq;
create table checkout (
    merchant_id bigint not null,
    live boolean not null,
    id bigint not null default nextval('checkout_id_seq'),
    token text,
    request_digest bytea not null,
    merchant_order_id text not null,
    amount numeric(20, 4) not null check (amount > 0),
    currency text not null,
    description text not null,
    success_url text not null,
    pingback_url text,
    sign_version text not null check (sign_version in ('v1', 'v2')),
    key_id bigint not null,
    parameters jsonb not null,
    email text not null default '',
    first_name text not null default '',
    last_name text not null default '',
    country text not null default '',
    created_at timestamptz not null,
    expires_at timestamptz not null,
    package_version_id bigint,
    first_amount numeric(20, 4),
    terms_agreed text not null default '',
    led_back_at timestamptz,
    token_hash bytea,
    foreign key (merchant_id, key_id) references merchant_key (merchant_id, id),
    foreign key (merchant_id, package_version_id) references package_version (merchant_id, id)
);
comment on table checkout is
    'a valid signed form; whether it is open, paid or closed follows from its order''s payment';
comment on column checkout.token is 'the link of an older version in clear, until it is hidden';
comment on column checkout.first_amount is
    'what is charged at the checkout of a subscription: the trial''s price, or the price';
comment on column checkout.led_back_at is 'when the customer was led to success_url by itself, which happens once';
comment on column checkout.token_hash is
    'keyed HMAC of the link that an older version made; null for what has its link from its seed';
-- The same signed request returns to the same checkout.
create unique index checkout_by_request on checkout (merchant_id, live, request_digest);
create index checkout_by_order on checkout (merchant_id, live, merchant_order_id);
-- Serve the links that older versions made, in clear or by their hash; rows of now have none and stand in neither.
create unique index checkout_by_old_token on checkout (merchant_id, token)
    where token is not null;
create unique index checkout_by_token_hash on checkout (merchant_id, token_hash)
    where token_hash is not null;
-- Last: all of a table's indexes look alike until it is analyzed, and of those that do the planner takes the newest. A
-- page looks for its checkout by nothing else.
alter table checkout add primary key (merchant_id, id);

-- What is written for every payment (checkouts, payments, attempts, ledger entries, pingbacks) names few parents by a
-- foreign key: the statements that write these rows have their parents in hand, and each key would cost a trigger per
-- row and lock the parent. `paydesk check` names rows whose parent is missing (its rule parents_exist).
create sequence payment_id_seq increment by 10 minvalue 8 maxvalue 9007199254740988 start with 8;
comment on sequence payment_id_seq is 'by tens, ending in 8, below 2^53: see paydesk/core/octal.py';
create table payment (
    merchant_id bigint not null,
    live boolean not null,
    id bigint not null default nextval('payment_id_seq'),
    merchant_order_id text not null,
    state text not null check (state in (
        'processing', 'challenged', 'declined', 'authorized', 'captured', 'voided',
        'partially_refunded', 'refunded', 'charged_back')),
    amount numeric(20, 4) not null check (amount >= 0),
    currency text not null,
    net numeric(20, 4) not null default 0,
    reserve numeric(20, 4) not null default 0,
    fees numeric(20, 4) not null default 0,
    checkout_id bigint,
    attempt_id bigint not null,
    customer_id bigint not null,
    card_id bigint not null,
    sign_version text not null,
    key_id bigint not null,
    pingback_url text,
    created_at timestamptz not null,
    paid_at timestamptz,
    subscription_id bigint,
    period_number integer,
    renewal boolean not null default false,
    revision integer not null default 0,
    moving_id bigint,
    ship_by timestamptz,
    shipping_due_at timestamptz,
    captured_at timestamptz,
    refunded numeric(20, 4) not null default 0 check (refunded >= 0),
    refunding numeric(20, 4) not null default 0 check (refunding >= 0),
    charged_back numeric(20, 4) not null default 0,
    pending_taken numeric(20, 4) not null default 0,
    reserve_taken numeric(20, 4) not null default 0,
    fees_taken numeric(20, 4) not null default 0,
    settled_at timestamptz,
    reserve_released_at timestamptz,
    funds_due_at timestamptz,
    primary key (merchant_id, id),
    check (refunded + refunding <= amount),
    foreign key (merchant_id, checkout_id) references checkout (merchant_id, id)
) with (fillfactor = 80);
comment on column payment.attempt_id is 'the attempt that holds the payment; each transition is guarded by it';
comment on column payment.revision is
    'grows with every change after the payment: what was reported is what was written';
comment on column payment.moving_id is 'the capture or void in progress: there is never more than one';
comment on column payment.ship_by is 'an authorization that is not shipped by then is voided';
comment on column payment.shipping_due_at is 'when the worker next looks at an authorization: to remind, then to void';
comment on column payment.refunding is 'what refunds in progress have reserved';
comment on column payment.charged_back is 'what chargebacks took and did not return: may be more than was paid';
comment on column payment.pending_taken is 'what refunds and chargebacks took of its net before it was settled';
comment on column payment.reserve_taken is 'what refunds and chargebacks took of its reserve before it was released';
comment on column payment.fees_taken is 'what refunds gave back of its fees';
comment on column payment.funds_due_at is
    'when the next part of its money becomes available: the net, then the reserve';
-- A shop's own reference may look like a renewal's; only what is paid at a checkout has an order to itself: it can't be
-- paid twice, whatever number of checkouts and attempts.
create unique index payment_by_order on payment (merchant_id, live, merchant_order_id) where not renewal;
-- Lists are newest first and continue after a row, so the id stands beside the time.
create index payment_by_time on payment (merchant_id, live, created_at, id);
-- Never twice for one period.
create unique index payment_by_period on payment (merchant_id, live, subscription_id, period_number)
    where subscription_id is not null;
-- Most payments are captured: the index by time serves those, this one the rest.
create index payment_by_state on payment (merchant_id, live, state, created_at, id) where state <> 'captured';
-- Renewals are found through their subscription's first payment, so that this index costs them nothing.
create index payment_by_customer on payment (merchant_id, live, customer_id) where not renewal;
-- Serves the worker's looks at authorizations: one merchant's side after the other.
create index payment_shipping_due on payment (merchant_id, live, shipping_due_at) where shipping_due_at is not null;
-- Serves settlement and the release of reserves.
create index payment_funds_due on payment (merchant_id, live, funds_due_at) where funds_due_at is not null;
-- Serves the search for the last digits of a card.
create index payment_by_card on payment (merchant_id, live, card_id) where not renewal;
-- Serves the list of orders that wait to be shipped, soonest first.
create index payment_to_ship on payment (merchant_id, live, ship_by, id) where state = 'authorized';

create sequence payment_attempt_id_seq;
create table payment_attempt (
    merchant_id bigint not null,
    live boolean not null,
    id bigint not null default nextval('payment_attempt_id_seq'),
    payment_id bigint not null,
    checkout_id bigint,
    state text not null check (state in (
        'processing', 'challenged', 'approved', 'declined', 'failed', 'abandoned', 'voiding', 'voided')),
    idempotency_key text not null,
    acquirer text not null,
    capture boolean not null,
    amount numeric(20, 4) not null,
    currency text not null,
    card_id bigint not null,
    client_address text not null,
    not_after timestamptz not null,
    acquirer_reference text not null default '',
    network_reference text not null default '',
    challenge_url text not null default '',
    decline_reason text not null default '',
    created_at timestamptz not null,
    finished_at timestamptz,
    lookups integer not null default 0,
    lookup_at timestamptz,
    leased_until timestamptz,
    alerted_at timestamptz,
    number integer,
    primary key (merchant_id, id)
) with (fillfactor = 80);
comment on column payment_attempt.not_after is
    'the acquirer refuses the key from then on, so that "not found" becomes final';
comment on column payment_attempt.lookup_at is 'when the janitor next asks the acquirer; null once nothing can change';
comment on column payment_attempt.number is 'of the attempts to take this payment; null for those whose key was drawn';
create unique index payment_attempt_by_key on payment_attempt (merchant_id, idempotency_key);
create index payment_attempt_by_payment on payment_attempt (merchant_id, live, payment_id);
-- Renewals have no checkout.
create index payment_attempt_by_checkout on payment_attempt (merchant_id, live, checkout_id)
    where checkout_id is not null;
-- Serves the janitor's claim.
create index payment_attempt_to_look_up on payment_attempt (lookup_at) where lookup_at is not null;
-- Serves the guard against card testing.
create index payment_attempt_declined on payment_attempt (merchant_id, live, client_address, finished_at)
    where state = 'declined';
-- Serves an acquirer's health: the attempts of the last hours, in real time (a test clock runs ahead of created_at).
-- One entry for every 128 pages, so that a payment pays next to nothing for it.
create index payment_attempt_lately on payment_attempt using brin (not_after) with (autosummarize = on);

create view payment_whole as
select p.merchant_id, p.live, p.id, p.merchant_order_id, p.state, p.amount, p.currency, p.net, p.reserve, p.fees,
       p.subscription_id, p.created_at, p.paid_at, u.first_name, u.last_name, u.username, u.country, u.email,
       c.brand, c.last4, a.decline_reason, p.refunded
  from payment p
  join customer u on u.merchant_id = p.merchant_id and u.live = p.live and u.id = p.customer_id
  join card c on c.merchant_id = p.merchant_id and c.live = p.live and c.id = p.card_id
  join payment_attempt a on a.merchant_id = p.merchant_id and a.live = p.live and a.id = p.attempt_id;

-- Chargebacks have their ids from this sequence, too, since merchants tell them and refunds apart by reference_id.
create sequence movement_id_seq;
create table movement (
    merchant_id bigint not null,
    live boolean not null,
    id bigint not null default nextval('movement_id_seq'),
    payment_id bigint not null,
    kind text not null check (kind in ('capture', 'void', 'refund')),
    state text not null,
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
    mailed boolean not null default false,
    fees_returned boolean,
    failed_at timestamptz,
    failure_muted boolean not null default false,
    unanswered_since timestamptz,
    primary key (merchant_id, id),
    foreign key (merchant_id, payment_id) references payment (merchant_id, id),
    check ((state = 'processing') = (lookup_at is not null)),
    check ((state = 'processing') = (finished_at is null)),
    constraint movement_state_check
        check (state in ('processing', 'done', 'refused') or state = 'failed' and kind = 'refund'),
    constraint movement_failed_at_check check ((state = 'failed') = (failed_at is not null))
) with (fillfactor = 80);
comment on table movement is 'money moved after the authorization: a capture, a void or a refund';
comment on column movement.request_key is 'the caller''s Idempotency-Key: one key is one movement';
comment on column movement.muted is 'the account did not want to be told of it';
comment on column movement.mailed is 'a refund was told to the customer, or needs no mail';
comment on column movement.fees_returned is
    'whether the account had the fees'' share given back when a refund was asked for; null: as it is when it '
    'is recorded';
comment on column movement.failed_at is 'when its money came back; `refusal` says why';
comment on column movement.failure_muted is 'the account did not want to be told that it failed';
comment on column movement.unanswered_since is
    'database time: begun without a key of the caller''s, who has not been told of it yet as far as we know';
create unique index movement_by_key on movement (merchant_id, idempotency_key);
create unique index movement_by_request on movement (merchant_id, live, request_key) where request_key is not null;
create index movement_by_payment on movement (merchant_id, live, payment_id);
create index movement_by_time on movement (merchant_id, live, created_at, id);
-- Serves the janitor's claim.
create index movement_to_look_up on movement (lookup_at) where lookup_at is not null;
-- Capture and void exclude each other while one is in progress.
create unique index movement_of_authorization on movement (merchant_id, payment_id)
    where kind in ('capture', 'void') and state = 'processing';
-- Serve the claims of what is still to be told.
create index movement_to_tell on movement (merchant_id, id) where kind = 'refund' and state = 'done' and not mailed;
-- Owners are told of authorizations that were voided because nobody shipped in time; `mailed` says whether they were.
create index movement_void_to_tell on movement (merchant_id, id)
 where kind = 'void' and requested_by = 'deadline' and state = 'done' and not mailed;

-- The keys under which acquirers are asked are made of what is wished, so that a database that forgets something makes
-- the same key again. Nothing from a sequence is in them: sequences go back, too. HMAC-SHA256 in the form of a UUID of
-- version 4; pads are the two blocks that HMAC makes of its secret, inner and outer.
create function derived_key(pads bytea, wish text) returns text
    language sql stable strict parallel safe
    return overlay(overlay(
        encode(substr(sha256(substr(pads, 65, 64) || sha256(substr(pads, 1, 64) || convert_to(wish, 'UTF8'))), 1, 16),
               'hex')
        placing '4' from 13) placing '8' from 17)::uuid::text;

-- The number of a payment's next attempt, whatever became of those before. Volatile, so that it sees what was committed
-- before the caller got its lock.
create function next_attempt(of_merchant bigint, of_live boolean, of_payment bigint) returns integer
    language sql volatile
    return (select greatest(count(*), max(number))::integer + 1
              from payment_attempt
             where merchant_id = of_merchant and live = of_live and payment_id = of_payment);

-- The key of a capture, void or refund: by the name that the caller gave it, else by its number of this kind on the
-- payment, refused ones counted. A name that was drawn for a request is none of its caller's, though they may come back
-- with it.
create function movement_key(
    pads bytea, of_key text, of_merchant bigint, of_live boolean, of_payment bigint, of_kind text, request_key text
) returns text
    language sql volatile
    return derived_key(pads, of_kind || ' ' || of_key || ' ' || case
        when request_key !~ '^drawn[ -][0-9a-f]{32}$' then 'key ' || request_key
        else 'number ' || (select count(*) + 1
                             from movement
                            where merchant_id = of_merchant and live = of_live and payment_id = of_payment
                              and kind = of_kind)
    end);

-- The payments with an order reference: the shop's own, and the renewal that has made this reference from it.
create function payments_of_reference(merchant bigint, side boolean, reference text) returns setof bigint
language sql stable as $$
    select p.id
      from payment p
     where p.merchant_id = merchant and p.live = side and p.merchant_order_id = reference and not p.renewal
     union all
    select r.id
      from payment p
      join subscription s on s.merchant_id = p.merchant_id and s.live = p.live and s.init_payment_id = p.id
      join payment r
        on r.merchant_id = s.merchant_id and r.live = s.live and r.subscription_id = s.id
       and r.subscription_id is not null
     where p.merchant_id = merchant and p.live = side and not p.renewal
       and p.merchant_order_id = regexp_replace(reference, ':[0-9]+$', '')
       and r.renewal and r.merchant_order_id = reference
$$;

-- The payments of whoever has an e-mail address, in lower case: at checkouts, and the renewals that followed.
create function payments_of_email(merchant bigint, side boolean, address text) returns setof bigint
language sql stable as $$
    with first as (
        select p.merchant_id, p.live, p.id
          from customer u
          join payment p on p.merchant_id = u.merchant_id and p.live = u.live and p.customer_id = u.id
         where u.merchant_id = merchant and u.live = side and lower(u.email) = address and not p.renewal
    )
    select id from first
     union all
    select r.id
      from first
      join subscription s on s.merchant_id = first.merchant_id and s.live = first.live and s.init_payment_id = first.id
      join payment r
        on r.merchant_id = s.merchant_id and r.live = s.live and r.subscription_id = s.id
       and r.subscription_id is not null and r.renewal
$$;

-- The payments that were made with cards of these last four digits.
create function payments_of_last4(merchant bigint, side boolean, digits text) returns setof bigint
language sql stable as $$
    with found as materialized (
        select id from card where merchant_id = merchant and live = side and last4 = digits
    ), first as (
        select p.id
          from found
          join payment p on p.merchant_id = merchant and p.live = side and p.card_id = found.id
         where not p.renewal
    ), charged as (
        select s.id
          from first
          join subscription s on s.merchant_id = merchant and s.live = side and s.init_payment_id = first.id
         union
        select c.subscription_id
          from found
          join card_change c on c.merchant_id = merchant and c.live = side and c.card_id = found.id
    )
    select id from first
     union all
    select r.id
      from charged
      join payment r
        on r.merchant_id = merchant and r.live = side and r.subscription_id = charged.id
       and r.subscription_id is not null
      join card c on c.merchant_id = r.merchant_id and c.live = r.live and c.id = r.card_id
     where r.renewal and c.last4 = digits
$$;

-- A card number is kept only while a subscription will be charged by it.
create view card_number_needed as
select merchant_id, card_id from subscription where date_next is not null
 union
select a.merchant_id, a.card_id
  from payment_attempt a
  join checkout k on k.merchant_id = a.merchant_id and k.id = a.checkout_id
 where a.lookup_at is not null and a.state in ('processing', 'challenged') and k.package_version_id is not null
 union
select merchant_id, card_id from card_change where lookup_at is not null and state in ('processing', 'challenged');
comment on view card_number_needed is
    'cards that a subscription will be charged by, or may begin with once an outcome is known';

create view card_number_spare as
select c.merchant_id, c.live, c.id
  from card c
  left join card_number_needed n on n.merchant_id = c.merchant_id and n.card_id = c.id
 where c.number_sealed is not null and (n.card_id is null or c.refused_as <> '');
comment on view card_number_spare is
    'cards whose number is there and needed by nothing; empty, since statements erase what they end the need for';
