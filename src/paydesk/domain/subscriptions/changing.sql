-- name: change_subscriptions(steps)
-- Each step's version is written if nobody else wrote one first and no charge is in flight, together with what becomes of
-- the open change, a new one if it has one (type), and the pingback that tells of it. A new one that is carried out at
-- once is never open, and holds from the next period on, which nobody may have tried to charge yet (a machine whose
-- clock is ahead of ours could have). The number of a card that nothing is charged to any more is erased; one that goes
-- on as another package counts there from now on. What a change comes to that is prorated goes into the balance, if nobody
-- has given back more of the period's payment since. (The new change waits for the old one, since only one may be open.
-- Each subscription is looked up by its key, in order: the planner takes a few steps for a hundred.)
with step as materialized (
    select r.*, f.merchant_id, f.live, f.id, f.revision, f.state, f.package_version_id, f.anchor, f.skipped, f.date_next,
           f.date_end, f.date_cancelled, f.cancelled_by
      from jsonb_to_recordset(:steps::jsonb)
        as r (version jsonb, closes_as text, type text, due_at timestamptz, asked_by text, since timestamptz,
              plan_id bigint, at_once boolean, proration jsonb, charge_digits integer, least_charge numeric, event text,
              payload text, send_to text, pingback_format text, now timestamptz)
     cross join lateral jsonb_populate_record(null::subscription, r.version) f
), was as materialized (
    select step.*, s.left_version_id,
           case when step.type is not null then nextval('subscription_change_id_seq') end as made_id
      from (select * from step order by merchant_id, live, id) step
     cross join lateral (
         select s.package_version_id as left_version_id
           from subscription s
          where s.merchant_id = step.merchant_id and s.live = step.live and s.id = step.id
            and s.revision = step.revision - 1 and s.state in ('Trial', 'Active') and s.charging_attempt_id is null
            and not (step.at_once
                     and exists (select
                                   from payment p
                                  where p.merchant_id = s.merchant_id and p.live = s.live and p.subscription_id = s.id
                                    and p.period_number = s.next_period))
            and (step.proration is null
                 or can_be_prorated(s.merchant_id, s.live, s.id, s.next_period,
                                    (step.proration ->> 'given_back')::numeric))
            for update of s
     ) s
), moved as (
    update subscription s
       set state = w.state, package_version_id = w.package_version_id, anchor = w.anchor, skipped = w.skipped,
           date_next = case when w.at_once or w.made_id is null then w.date_next end, date_end = w.date_end,
           date_cancelled = w.date_cancelled, cancelled_by = w.cancelled_by, revision = w.revision,
           change_id = case when not w.at_once then w.made_id end,
           balance = s.balance + coalesce((w.proration ->> 'amount')::numeric, 0),
           charge_digits = case when w.proration is null then s.charge_digits else w.charge_digits end,
           least_charge = case when w.proration is null then s.least_charge else w.least_charge end
      from was w
     where s.merchant_id = w.merchant_id and s.live = w.live and s.id = w.id and s.revision = w.revision - 1
 returning s.merchant_id, s.live, s.id, s.state, s.package_version_id, s.next_period, s.card_id, s.sign_version,
           s.key_id, w.left_version_id, w.made_id, w.closes_as, w.type, w.due_at, w.asked_by, w.since, w.plan_id,
           w.at_once, w.proration, w.event, w.payload, w.send_to, w.pingback_format, w.now
), closed as (
    update subscription_change c
       set state = s.closes_as, finished_at = s.now,
           period_number = case when c.type = 'change' and s.closes_as = 'done' then s.next_period end
      from moved s
     where c.merchant_id = s.merchant_id and c.live = s.live and c.subscription_id = s.id and c.state = 'open'
 returning c.id
), opened as (
    insert into subscription_change (merchant_id, live, id, subscription_id, type, due_at, asked_by, since,
                                     package_version_id, created_at, state, finished_at, period_number)
    select s.merchant_id, s.live, s.made_id, s.id, s.type, s.due_at, s.asked_by, s.since, s.plan_id, s.now,
           case when s.at_once then 'done' else 'open' end, case when s.at_once then s.now end,
           case when s.at_once then s.next_period end
      from moved s
     cross join (select count(*) from closed) before
     where s.made_id is not null
), prorated as (
    insert into subscription_proration (merchant_id, live, subscription_id, change_id, period_number, began_at, ends_at,
                                        at, old_price, new_price, given_back, amount, begins)
    select s.merchant_id, s.live, s.id, s.made_id, n.period_number, n.began_at, n.ends_at, n.at, n.old_price,
           n.new_price, n.given_back, n.amount, n.begins
      from moved s
     cross join lateral jsonb_to_record(s.proration)
        as n (period_number integer, began_at timestamptz, ends_at timestamptz, at timestamptz, old_price numeric,
              new_price numeric, given_back numeric, amount numeric, begins boolean)
     where s.proration is not null
), passed_on as (
    select merchant_id, live, left_version_id as version_id, -1 as more
      from moved
     where left_version_id <> package_version_id
     union all
    select merchant_id, live, package_version_id, 1
      from moved
     where left_version_id <> package_version_id
), by_version as materialized (
    select v.merchant_id, v.live, v.id, v.package_id, o.more
      from (select merchant_id, live, version_id, sum(more) as more
              from passed_on
             group by merchant_id, live, version_id) o
      join package_version v on v.merchant_id = o.merchant_id and v.live = o.live and v.id = o.version_id
     order by v.merchant_id, v.live, v.id
       for update of v
), counted as (
    update package_version v
       set subscriptions_count = v.subscriptions_count + o.more
      from by_version o
     where v.merchant_id = o.merchant_id and v.live = o.live and v.id = o.id
), counted_together as (
    update subscription_package k
       set subscriptions_count = k.subscriptions_count + o.more
      from (select merchant_id, live, package_id, sum(more) as more
              from by_version
             group by merchant_id, live, package_id) o
     where k.merchant_id = o.merchant_id and k.live = o.live and k.id = o.package_id and o.more <> 0
), told as (
    insert into pingback (merchant_id, live, event, subscription_id, url, sign_version, key_id, format, payload,
                          state, due_at, created_at)
    select s.merchant_id, s.live, s.event, s.id, s.send_to, s.sign_version, s.key_id, s.pingback_format, s.payload,
           case when s.event = any(m.muted_events) then 'muted'
                when s.send_to is null then 'waiting' else 'due' end, s.now, s.now
      from moved s
      join merchant m on m.id = s.merchant_id
     where s.payload is not null
), card_forgotten as (
    update card c
       set number_sealed = null, erased_at = s.now
      from moved s
     where s.state not in ('Trial', 'Active') and c.merchant_id = s.merchant_id and c.live = s.live
       and c.id = s.card_id and c.number_sealed is not null
)
select id from moved;

-- name: due_to_change(real_now, at, most, merchant_id, aside_since)
-- Subscriptions whose change is due, each by its side's own time: what is due in real time is due on every side, the
-- rest is looked for only where a test clock runs ahead. What was set aside lately is left out. (Each is read by itself,
-- so that finding nothing is planned in two milliseconds and not in thirty, after each `analyze` of a table.)
with due as (
    (select c.merchant_id, c.live, c.subscription_id, c.due_at
       from subscription_change c
      where c.state = 'open' and c.due_at <= :real_now::timestamptz and :merchant_id::bigint is null
        and coalesce(c.merchant_id <> all (array(select merchant_id from merchant_fence)), true)
        and not exists (select
                          from alarm a
                         where a.merchant_id = c.merchant_id and a.live = c.live and a.kind = 'set_aside'
                           and a.subject = 'subscription ' || c.subscription_id and a.settled_at is null
                           and a.last_at > :aside_since)
      order by c.due_at
      limit :most)
     union
    (select c.merchant_id, c.live, c.subscription_id, c.due_at
       from merchant m
      cross join lateral (
          select *
            from subscription_change c
           where c.merchant_id = m.id and not c.live and c.state = 'open'
             and c.due_at <= coalesce(:at::timestamptz, :real_now::timestamptz + side_clock(false, m.test_clock))
             and not exists (select
                               from alarm a
                              where a.merchant_id = c.merchant_id and a.live = c.live and a.kind = 'set_aside'
                                and a.subject = 'subscription ' || c.subscription_id and a.settled_at is null
                                and a.last_at > :aside_since)
           order by c.due_at
           limit :most
      ) c
     where case when :merchant_id::bigint is null then m.test_clock > interval '0' else m.id = :merchant_id end
       and coalesce(m.id <> all (array(select merchant_id from merchant_fence)), true)
     limit :most)
)
select w.*, coalesce(:at::timestamptz, :real_now::timestamptz + side_clock(w.live, m.test_clock)) as shop_now,
       m.pingback_url as account_url, m.test_pingback_url, m.went_live_at, m.pingback_format
  from due
  join merchant m on m.id = due.merchant_id
 cross join lateral (
     select *
       from subscription_tried w
      where w.merchant_id = due.merchant_id and w.live = due.live and w.id = due.subscription_id
     offset 0
 ) w
 where w.change_type is not null and w.charging_attempt_id is null
 order by due.due_at
 limit :most;

-- name: is_charged_slowly(merchant_id, live, id)$
-- Whether a subscription is charged by what takes some days.
select c.slow
  from subscription s
  join card c on c.merchant_id = s.merchant_id and c.live = s.live and c.id = s.card_id
 where s.merchant_id = :merchant_id and s.live = :live and s.id = :id;

-- name: on_its_way_until(merchant_id, live, attempt_id)$
-- By when, in the shop's time, the bank says whether it pays a charge that waits for that; null of any other.
select coalesce(a.sure_by, h.sure_by)
  from payment_attempt a
  left join hosted_page h on h.merchant_id = a.merchant_id and h.live = a.live and h.attempt_id = a.id
 where a.merchant_id = :merchant_id and a.live = :live and a.id = :attempt_id and a.state = 'pending';
