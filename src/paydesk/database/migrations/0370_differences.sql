-- oldest code: 150
-- What a change of plan within a period comes to, charged at once: a charge that is not a period. Its payment is an order of
-- its own, so that code of before finds out what became of it, gives it back and undoes it like any other; the plan changes,
-- or stays, by the trigger on payments, whoever writes down the outcome. Until then the subscription is marked as being
-- charged, which keeps every code from charging, changing or ending it by the calendar.
create table subscription_difference (
    merchant_id bigint not null,
    live boolean not null,
    attempt_id bigint not null,
    subscription_id bigint not null,
    request_key text,
    state text not null default 'open' check (state in ('open', 'paid', 'declined')),
    change_id bigint,
    package_version_id bigint not null,
    renewal_at timestamptz not null,
    asked_by text not null,
    charged numeric(20, 4) not null check (charged > 0),
    period_number integer not null,
    began_at timestamptz not null,
    ends_at timestamptz not null,
    at timestamptz not null,
    old_price numeric(20, 4) not null,
    new_price numeric(20, 4) not null,
    given_back numeric(20, 4) not null,
    amount numeric(20, 4) not null,
    charge_digits integer not null,
    least_charge numeric(20, 4) not null,
    finished_at timestamptz,
    primary key (merchant_id, attempt_id),
    -- Test data may be deleted as a whole when a test clock is reset; this goes with what it belongs to.
    foreign key (merchant_id, subscription_id) references subscription (merchant_id, id) on delete cascade,
    check ((state = 'open') = (finished_at is null)),
    check ((state = 'paid') = (change_id is not null))
);
comment on table subscription_difference is
    'a change of plan whose difference is charged at once: it is carried out once that is paid';
comment on column subscription_difference.request_key is 'the caller''s Idempotency-Key: one key is one charge';
comment on column subscription_difference.renewal_at is 'when the period is over that is paid, and the next one is charged';
comment on column subscription_difference.charged is 'what is charged; the rest of amount stays in the balance';
comment on column subscription_difference.amount is 'what is put into the balance, as of a change that is prorated';
create unique index subscription_difference_by_request on subscription_difference (merchant_id, live, request_key)
    where request_key is not null;
create unique index subscription_difference_open on subscription_difference (merchant_id, live, subscription_id)
    where state = 'open';
create index subscription_difference_by_period on subscription_difference (merchant_id, subscription_id, period_number);

create function difference_is_paid(of_merchant_id bigint, of_live boolean, of_attempt_id bigint, paid timestamptz)
    returns void
    language plpgsql
    as $$
declare
    d subscription_difference;
    s subscription;
    made_id bigint;
begin
    select * into d
      from subscription_difference
     where merchant_id = of_merchant_id and live = of_live and attempt_id = of_attempt_id and state = 'open'
       for update;
    if not found then
        return;
    end if;
    select * into s
      from subscription
     where merchant_id = of_merchant_id and live = of_live and id = d.subscription_id
       for update;
    update subscription_change
       set state = 'replaced', finished_at = paid
     where merchant_id = of_merchant_id and live = of_live and subscription_id = s.id and state = 'open';
    insert into subscription_change (merchant_id, live, subscription_id, type, due_at, asked_by, since,
                                     package_version_id, created_at, state, finished_at, period_number)
    values (of_merchant_id, of_live, s.id, 'change', d.at, d.asked_by, d.at, d.package_version_id, d.at, 'done',
            greatest(paid, d.at), d.period_number + 1)
 returning id into made_id;
    insert into subscription_proration (merchant_id, live, subscription_id, change_id, period_number, began_at, ends_at,
                                        at, old_price, new_price, given_back, amount)
    values (of_merchant_id, of_live, s.id, made_id, d.period_number, d.began_at, d.ends_at, d.at, d.old_price,
            d.new_price, d.given_back, d.amount);
    update subscription
       set package_version_id = d.package_version_id, balance = balance + d.amount - d.charged,
           charge_digits = d.charge_digits, least_charge = d.least_charge, revision = revision + 1, change_id = null,
           date_next = case when state in ('Trial', 'Active') then coalesce(date_next, d.renewal_at) end,
           charging_attempt_id = nullif(charging_attempt_id, of_attempt_id)
     where merchant_id = of_merchant_id and live = of_live and id = s.id;
    if s.package_version_id <> d.package_version_id then
        update package_version v
           set subscriptions_count = v.subscriptions_count + case when v.id = d.package_version_id then 1 else -1 end
         where v.merchant_id = of_merchant_id and v.live = of_live
           and v.id in (s.package_version_id, d.package_version_id);
        update subscription_package k
           set subscriptions_count = k.subscriptions_count + o.more
          from (select v.package_id, sum(case when v.id = d.package_version_id then 1 else -1 end) as more
                  from package_version v
                 where v.merchant_id = of_merchant_id and v.live = of_live
                   and v.id in (s.package_version_id, d.package_version_id)
                 group by v.package_id) o
         where k.merchant_id = of_merchant_id and k.live = of_live and k.id = o.package_id and o.more <> 0;
    end if;
    update subscription_difference
       set state = 'paid', change_id = made_id, finished_at = greatest(paid, d.at)
     where merchant_id = of_merchant_id and attempt_id = of_attempt_id;
end
$$;
comment on function difference_is_paid is
    'the plan changes: what change_subscription does for a change at once, and what was charged leaves the balance';

create function is_free_for_difference(p payment, of_subscription_id bigint) returns boolean
    language sql stable
    as $$
    select case p.state
           when 'declined' then exists (select
                                          from subscription_difference d
                                         where d.merchant_id = p.merchant_id and d.live = p.live
                                           and d.attempt_id = p.attempt_id and d.subscription_id = of_subscription_id)
           when 'captured' then p.checkout_id is null and p.subscription_id is null
                                and p.refunded + p.refunding + p.charged_back = 0
                                and not exists (select
                                                  from instrument_charge i
                                                 where i.merchant_id = p.merchant_id and i.attempt_id = p.attempt_id)
                                and not exists (select
                                                  from subscription_difference d
                                                 where d.merchant_id = p.merchant_id and d.attempt_id = p.attempt_id)
           else false end
    $$;
comment on function is_free_for_difference is
    'whether a subscription''s next difference is this payment''s: it was declined, or it is one that was forgotten';

create function can_be_prorated(of_merchant_id bigint, of_live boolean, of_subscription_id bigint, next_period integer,
                                given_back numeric) returns boolean
    language sql stable
    as $$
    select not exists (select
                         from payment p
                        where p.merchant_id = of_merchant_id and p.live = of_live
                          and p.subscription_id = of_subscription_id and p.period_number = next_period)
       and exists (select
                     from payment p
                    where p.merchant_id = of_merchant_id and p.live = of_live
                      and p.subscription_id = of_subscription_id and p.period_number = next_period - 1
                      and p.refunded + p.refunding + p.charged_back = given_back + (
                              select coalesce(sum(n.given_back), 0)
                                from subscription_proration n
                               where n.merchant_id = of_merchant_id and n.subscription_id = of_subscription_id
                                 and n.period_number = p.period_number))
       and not exists (select
                         from subscription_difference d
                         join payment_attempt a
                           on a.merchant_id = d.merchant_id and a.live = d.live and a.id = d.attempt_id
                         join payment p on p.merchant_id = a.merchant_id and p.live = a.live and p.id = a.payment_id
                        where d.merchant_id = of_merchant_id and d.live = of_live
                          and d.subscription_id = of_subscription_id and d.period_number = next_period - 1
                          and d.state = 'paid' and p.refunded + p.refunding + p.charged_back > 0)
    $$;
comment on function can_be_prorated is
    'whether a period is as a change within it was worked out from: nobody has charged the next one, or given back more';
