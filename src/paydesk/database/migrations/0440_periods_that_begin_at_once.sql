-- oldest code: 150
-- locks: subscription_difference, subscription_proration
-- A change of plan at once may begin another period, in a trial or with periods of another length: the rest of the one that
-- was paid is given up, and the new one is charged now, as an order of its own. Its renewal, which is due at once, is
-- covered by that, so that code of before makes it, and counts it, as any other.
alter table subscription_difference
    add column anchor timestamptz,
    add column skipped integer;
comment on column subscription_difference.anchor is
    'the calendar that begins with it, if another period begins at once: that period is what is charged';
comment on column subscription_difference.skipped is 'as anchor';

alter table subscription_proration add column begins boolean not null default false;
comment on column subscription_proration.begins is
    'whether another period began with it at once: new_price is what the rest of this one was worth then';

create function given_back_of_begun(of_merchant_id bigint, of_live boolean, of_subscription_id bigint,
                                    of_period integer) returns numeric
    language sql stable
    as $$
    select coalesce(sum(p.refunded + p.refunding + p.charged_back), 0)
      from subscription_difference d
      join payment_attempt a on a.merchant_id = d.merchant_id and a.live = d.live and a.id = d.attempt_id
      join payment p on p.merchant_id = a.merchant_id and p.live = a.live and p.id = a.payment_id
     where d.merchant_id = of_merchant_id and d.live = of_live and d.subscription_id = of_subscription_id
       and d.period_number = of_period - 1 and d.anchor is not null and d.state = 'paid'
    $$;
comment on function given_back_of_begun is
    'what was refunded or charged back of the order that a period began with, or is being so; 0 of one that was renewed';

create or replace function difference_is_paid(of_merchant_id bigint, of_live boolean, of_attempt_id bigint, paid timestamptz)
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
                                        at, old_price, new_price, given_back, amount, begins)
    values (of_merchant_id, of_live, s.id, made_id, d.period_number, d.began_at, d.ends_at, d.at, d.old_price,
            d.new_price, d.given_back, d.amount, d.anchor is not null);
    update subscription
       set package_version_id = d.package_version_id, balance = balance + d.amount - d.charged,
           charge_digits = d.charge_digits, least_charge = d.least_charge, revision = revision + 1, change_id = null,
           anchor = coalesce(d.anchor, anchor), skipped = coalesce(d.skipped, skipped),
           date_next = case when state not in ('Trial', 'Active') then null
                            when d.anchor is not null then d.renewal_at
                            else coalesce(date_next, d.renewal_at) end,
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

create or replace function can_be_prorated(of_merchant_id bigint, of_live boolean, of_subscription_id bigint, next_period integer,
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
                      and p.refunded + p.refunding + p.charged_back
                          + given_back_of_begun(of_merchant_id, of_live, of_subscription_id, p.period_number)
                          = given_back + (
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
                          and d.subscription_id = of_subscription_id and d.period_number = next_period - 1 and d.anchor is null
                          and d.state = 'paid' and p.refunded + p.refunding + p.charged_back > 0)
    $$;
