-- Pingbacks: what merchants' servers are told, and each attempt to tell them.

create sequence pingback_id_seq;
create table pingback (
    merchant_id bigint not null,
    live boolean not null,
    id bigint not null default nextval('pingback_id_seq'),
    event text not null,
    payment_id bigint,
    url text,
    sign_version text not null check (sign_version in ('v1', 'v2')),
    key_id bigint not null,
    format text not null check (format in ('json', 'form')),
    payload text not null,
    state text not null check (state in ('waiting', 'due', 'acknowledged', 'exhausted', 'muted')),
    attempts integer not null default 0,
    due_at timestamptz not null,
    leased_until timestamptz,
    created_at timestamptz not null,
    finished_at timestamptz,
    subscription_id bigint,
    reversal_id bigint,
    reversal_step integer not null default 1,
    primary key (merchant_id, id),
    check (state = 'muted' or (url is null) = (state = 'waiting'))
) with (fillfactor = 80);
comment on column pingback.payload is 'the envelope as JSON text without pingback_ts, which each attempt adds anew';
comment on column pingback.reversal_id is 'the refund, void or chargeback that it tells of';
comment on column pingback.reversal_step is
    'the step of a chargeback that it tells of: the first time it was taken, the second';
-- A payment is reported once.
create unique index pingback_of_payment on pingback (merchant_id, live, payment_id) where event = 'payment';
create index pingback_by_time on pingback (merchant_id, live, created_at, id);
-- Serves the sender's claim: one merchant's side after the other, oldest first.
create index pingback_due on pingback (merchant_id, live, due_at) where state = 'due';
-- Serves the sending of what waited for a URL.
create index pingback_waiting on pingback (merchant_id, live) where state = 'waiting';
-- A subscription ends once, and says so once.
create unique index pingback_of_end on pingback (merchant_id, live, subscription_id)
    where event in ('subscription_cancelled', 'subscription_stopped', 'subscription_expired');
-- Most pingbacks are acknowledged: the index by time serves those, this one the rest.
create index pingback_by_state on pingback (merchant_id, live, state, created_at, id) where state <> 'acknowledged';
-- Each step of a reversal is told once.
create unique index pingback_of_reversal on pingback (merchant_id, live, reversal_id, event, reversal_step)
    where reversal_id is not null;
-- Serves the list of pingbacks about a payment: those of its refunds and chargebacks.
create index pingback_of_reversed_payment on pingback (merchant_id, live, payment_id) where reversal_id is not null;
-- Serves the list of one event other than `payment`.
create index pingback_by_event on pingback (merchant_id, live, event, created_at, id) where event <> 'payment';
-- Serves the list of one event that failed or waits for a URL, and sending again all of one event that failed.
create index pingback_failed_by_event on pingback (merchant_id, live, state, event, created_at, id)
    where state in ('waiting', 'exhausted');

-- Where a pingback goes by what is set now, by the rules for a new one: the URL of its form, else the account's; once
-- the merchant is live, test ones to its test URL alone. Null if there is none.
-- (domain/pingbacks/destinations.py says the same.)
create function pingback_destination(told pingback, account merchant) returns text
    language sql stable parallel safe
    as $$
        select case when told.live then coalesce(form.url, account.pingback_url)
                    when account.went_live_at is not null then account.test_pingback_url
                    else coalesce(form.url, account.test_pingback_url, account.pingback_url) end
          from (select coalesce((select p.pingback_url
                                   from payment p
                                  where p.merchant_id = told.merchant_id and p.live = told.live
                                    and p.id = told.payment_id),
                                (select s.pingback_url
                                   from subscription s
                                  where s.merchant_id = told.merchant_id and s.live = told.live
                                    and s.id = told.subscription_id)) as url) form
    $$;

-- The pingbacks about payments, about what was given back of them, and about the ends of the subscriptions that these
-- payments began.
create function pingbacks_about(merchant bigint, side boolean, payments bigint[]) returns setof bigint
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

create sequence pingback_attempt_id_seq;
create table pingback_attempt (
    merchant_id bigint not null,
    live boolean not null,
    id bigint not null default nextval('pingback_attempt_id_seq'),
    pingback_id bigint not null,
    number integer not null,
    at timestamptz not null,
    url text not null,
    request_headers jsonb not null,
    request_body text not null,
    status integer,
    response_body text not null default '',
    error text not null default '',
    duration_ms integer not null,
    primary key (merchant_id, at, id)
) partition by range (at);
create table pingback_attempt_other partition of pingback_attempt default;
create index pingback_attempt_by_pingback on pingback_attempt (merchant_id, live, pingback_id, number);

-- What `paydesk check` reads pingbacks' texts with: a text that is no JSON must be named, not end the check.
create function json_or_null(body text) returns jsonb language plpgsql immutable parallel safe as $$
begin
    return body::jsonb;
exception when others then
    return null;
end $$;
comment on function json_or_null is 'a text as JSON, null if it is none';
