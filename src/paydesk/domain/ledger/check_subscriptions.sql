-- Rules about subscriptions; each as in check_payments.sql.

-- name: periods_paid(merchant_id)
-- Before next_period every period is paid, once; for next_period there is at most one payment, not paid yet.
with charged as (
    select merchant_id, subscription_id, count(*) as payments, count(distinct period_number) as periods,
           min(period_number) as first_period,
           max(period_number) as last_period, count(*) filter (where paid_at is not null) as paid,
           max(period_number) filter (where paid_at is not null) as last_paid
      from payment
     where (:merchant_id::bigint is null or merchant_id = :merchant_id) and subscription_id is not null
     group by merchant_id, subscription_id
)
select 'subscription' as table_name, s.merchant_id, s.id,
       format('charges period %s next, but has %s payments for %s periods from %s to %s, %s paid until %s',
              s.next_period, coalesce(c.payments, 0), coalesce(c.periods, 0), c.first_period, c.last_period,
              coalesce(c.paid, 0), c.last_paid) as detail
  from subscription s
  join package_version v on v.merchant_id = s.merchant_id and v.id = s.package_version_id
  left join charged c on c.merchant_id = s.merchant_id and c.subscription_id = s.id
 where (:merchant_id::bigint is null or s.merchant_id = :merchant_id)
   and (c.payments is null
        or c.first_period <> (v.trial_length = 0)::integer
        or c.last_paid is distinct from s.next_period - 1
        or c.paid <> s.next_period - c.first_period
        or c.payments <> c.periods
        or c.last_period > s.next_period
        or v.payment_limit > 0 and c.last_period > v.payment_limit)
 union all
select 'payment', p.merchant_id, p.id, format('is for subscription %s, which does not exist', p.subscription_id)
  from payment p
  left join subscription s on s.merchant_id = p.merchant_id and s.id = p.subscription_id
 where (:merchant_id::bigint is null or p.merchant_id = :merchant_id)
   and p.subscription_id is not null and s.id is null;

-- name: counters_agree(merchant_id)
with charged as (
    select merchant_id, subscription_id, count(*) filter (where paid_at is not null) as paid,
           count(*) filter (where paid_at is not null and period_number > 0) as regular, max(paid_at) as last_paid_at
      from payment
     where (:merchant_id::bigint is null or merchant_id = :merchant_id) and subscription_id is not null
     group by merchant_id, subscription_id
)
select 'subscription' as table_name, s.merchant_id, s.id,
       format('counts %s payments, %s of them regular, the last at %s, but %s, %s and %s are true', s.paid_number_counter,
              s.counter, s.date_paid, coalesce(c.paid, 0), coalesce(c.regular, 0), c.last_paid_at) as detail
  from subscription s
  left join charged c on c.merchant_id = s.merchant_id and c.subscription_id = s.id
 where (:merchant_id::bigint is null or s.merchant_id = :merchant_id)
   and (s.paid_number_counter, s.counter, s.date_paid) is distinct from (c.paid, c.regular, c.last_paid_at)
 union all
select 'subscription_package', k.merchant_id, k.id,
       format('counts %s subscriptions, but has %s', k.subscriptions_count, count(s.id))
  from subscription_package k
  left join package_version v on v.merchant_id = k.merchant_id and v.package_id = k.id
  left join subscription s on s.merchant_id = v.merchant_id and s.package_version_id = v.id
 where (:merchant_id::bigint is null or k.merchant_id = :merchant_id)
 group by k.merchant_id, k.id, k.subscriptions_count
having k.subscriptions_count <> count(s.id)
 union all
-- Of a version and those that coupons have made of it together: subscriptions come to it from them.
select 'package_version', v.merchant_id, coalesce(v.list_version_id, v.id),
       format('counts %s subscriptions, but has %s', sum(v.subscriptions_count), sum(c.subscriptions))
  from package_version v
 cross join lateral (
     select count(*) as subscriptions
       from subscription s
      where s.merchant_id = v.merchant_id and s.package_version_id = v.id
 ) c
 where (:merchant_id::bigint is null or v.merchant_id = :merchant_id)
 group by v.merchant_id, coalesce(v.list_version_id, v.id)
having sum(v.subscriptions_count) <> sum(c.subscriptions);

-- name: subscriptions_stand(merchant_id)
-- Its dates say what its state says; what runs has a next date, runs out its last period, has an open change and no
-- date, or is kept open by its dunning plan; a charge in flight is the open attempt of the period that is charged next.
select 'subscription' as table_name, s.merchant_id, s.id,
       format('is %s with %s regular payments, next %s, end %s, expired %s, cancelled %s, stopped %s, in flight %s (%s)',
              s.state, s.counter, s.date_next, s.date_end, s.date_expired, s.date_cancelled, s.date_stopped,
              s.charging_attempt_id, coalesce(a.state, 'none')) as detail
  from subscription s
  join package_version v on v.merchant_id = s.merchant_id and v.id = s.package_version_id
  left join payment_attempt a on a.merchant_id = s.merchant_id and a.id = s.charging_attempt_id
  left join payment p on p.merchant_id = a.merchant_id and p.id = a.payment_id
 cross join lateral (
     select s.failures > 0 and s.date_next is null and coalesce(s.dunning ->> 'end' = 'keep_open', false) as kept_open
 ) o
 where (:merchant_id::bigint is null or s.merchant_id = :merchant_id)
   and (s.state = 'Trial'
           and (v.trial_length = 0 or s.counter > 0 or s.date_next is null and s.change_id is null and not o.kept_open)
        or s.state = 'Active'
           and (s.counter = 0
                or s.change_id is null and (s.date_next is null and not o.kept_open) <> (s.date_end is not null))
        or s.change_id is not null
           and (s.date_next is not null or s.date_end is not null or s.state not in ('Trial', 'Active'))
        or (s.state in ('Cancelled', 'Expired')) and s.date_next is not null
        or (s.state = 'Cancelled') <> (s.date_cancelled is not null)
        or (s.state = 'Expired') <> (s.date_expired is not null)
        or s.state = 'Expired' and s.date_end is null
        or s.date_stopped is not null and (s.state <> 'Cancelled' or s.cancelled_by <> 'retries')
        or (s.date_active is not null) <> (s.counter > 0)
        or s.charging_attempt_id is not null
           and (coalesce(a.state in ('processing', 'pending'), false), p.subscription_id, p.period_number, p.attempt_id)
               is distinct from (true, s.id, s.next_period, a.id)
           and not exists (select
                             from subscription_difference d
                            where d.merchant_id = s.merchant_id and d.subscription_id = s.id
                              and d.attempt_id = s.charging_attempt_id and d.state = 'open')
        or s.charging_attempt_id is null
           and exists (select
                         from payment open
                        where open.merchant_id = s.merchant_id and open.live = s.live and open.subscription_id = s.id
                          and open.state in ('processing', 'pending')));

-- name: dunning_kept(merchant_id, most_tries)
-- A charge that fails by a plan counts its failures there, has fewer tries to come than the plan had, each failure has
-- a declined attempt, and none of a subscription that has been stopped came after that.
select 'subscription' as table_name, s.merchant_id, s.id,
       format('failed %s times, by its attempts %s, by its plan of %s tries %s with %s to come', s.failures, n.declined,
              s.dunning ->> 'tries', s.dunning ->> 'failures', jsonb_array_length(s.dunning -> 'left')) as detail
  from subscription s
 cross join lateral (
     select count(*) as declined, max(a.created_at) as last_at
       from payment p
       join payment_attempt a on a.merchant_id = p.merchant_id and a.live = p.live and a.payment_id = p.id
      where p.merchant_id = s.merchant_id and p.live = s.live and p.subscription_id = s.id
        and p.period_number = s.next_period and a.state = 'declined'
        and a.decline_reason not in ('too_late', 'request_refused')
 ) n
 where (:merchant_id::bigint is null or s.merchant_id = :merchant_id) and s.dunning is not null
   and (s.failures is distinct from (s.dunning ->> 'failures')::integer
        or (s.dunning ->> 'tries')::integer not between 1 and :most_tries::integer
        or jsonb_array_length(s.dunning -> 'left') >= (s.dunning ->> 'tries')::integer
        or s.failures > n.declined
        or s.date_stopped < n.last_at);

-- name: changes_agree(merchant_id)
-- The open change of a subscription is the one that it waits for; a cancellation that was carried out has ended it, then.
-- Nothing is charged while a change is open, nor after one has ended it, but for what the clocks of two machines differ.
-- From when a change is due what it brings may be charged, and periods before the first one of another plan had been: so
-- a clock that is put back meanwhile, by however much, is no fault.
select 'subscription' as table_name, s.merchant_id, s.id,
       format('waits for change %s, but %s', s.change_id, coalesce('change ' || c.id || ' is open', 'none is open'))
           as detail
  from subscription s
  left join subscription_change c
    on c.merchant_id = s.merchant_id and c.live = s.live and c.subscription_id = s.id and c.state = 'open'
 where (:merchant_id::bigint is null or s.merchant_id = :merchant_id)
   and (s.change_id is not null or c.id is not null) and s.change_id is distinct from c.id
 union all
select 'subscription_change', c.merchant_id, c.id,
       format('ended subscription %s at %s, which is %s, cancelled at %s', c.subscription_id, c.due_at, s.state,
              s.date_cancelled)
  from subscription_change c
  join subscription s on s.merchant_id = c.merchant_id and s.live = c.live and s.id = c.subscription_id
 where (:merchant_id::bigint is null or c.merchant_id = :merchant_id) and c.type = 'cancel' and c.state = 'done'
   and (s.state <> 'Cancelled' or s.date_cancelled is distinct from c.due_at or s.cancelled_by <> c.asked_by)
 union all
-- A plan that was changed is charged by its terms from the first period on that it was changed for.
select 'subscription_change', c.merchant_id, c.id,
       format('brought subscription %s to plan %s at %s from period %s on, but payment %s for period %s is of %s',
              c.subscription_id, c.package_version_id, v.price, c.period_number, p.id, p.period_number, p.amount)
  from subscription_change c
  join package_version v on v.merchant_id = c.merchant_id and v.live = c.live and v.id = c.package_version_id
  join payment p on p.merchant_id = c.merchant_id and p.live = c.live and p.subscription_id = c.subscription_id
   and p.period_number >= c.period_number
 where (:merchant_id::bigint is null or c.merchant_id = :merchant_id) and c.type = 'change' and c.state = 'done'
   and (p.amount + coalesce(p.into_balance, 0), p.currency) is distinct from (v.price, v.currency)
   and not exists (select
                     from subscription_change later
                    where later.merchant_id = c.merchant_id and later.live = c.live
                      and later.subscription_id = c.subscription_id and later.type = 'change'
                      and later.state = 'done' and later.id > c.id and later.period_number <= p.period_number)
 union all
select 'subscription_change', c.merchant_id, c.id,
       format('brought subscription %s to plan %s, but it is on %s', c.subscription_id, c.package_version_id,
              s.package_version_id)
  from subscription_change c
  join subscription s on s.merchant_id = c.merchant_id and s.live = c.live and s.id = c.subscription_id
 where (:merchant_id::bigint is null or c.merchant_id = :merchant_id) and c.type = 'change' and c.state = 'done'
   and s.package_version_id <> c.package_version_id
   and not exists (select
                     from subscription_change later
                    where later.merchant_id = c.merchant_id and later.live = c.live
                      and later.subscription_id = c.subscription_id and later.type = 'change'
                      and later.state = 'done' and later.id > c.id)
 union all
select 'subscription_change', c.merchant_id, c.id,
       format('brings subscription %s to plan %s, which its side does not have', c.subscription_id,
              c.package_version_id)
  from subscription_change c
  left join package_version v on v.merchant_id = c.merchant_id and v.live = c.live and v.id = c.package_version_id
 where (:merchant_id::bigint is null or c.merchant_id = :merchant_id) and c.package_version_id is not null
   and v.id is null
 union all
select 'subscription_change', c.merchant_id, c.id,
       format('(%s) kept subscription %s from being charged from %s to %s, but it was charged at %s', c.type,
              c.subscription_id, c.since, c.finished_at, a.created_at)
  from subscription_change c
  join payment p on p.merchant_id = c.merchant_id and p.live = c.live and p.subscription_id = c.subscription_id
  join payment_attempt a on a.merchant_id = p.merchant_id and a.live = p.live and a.payment_id = p.id
 where (:merchant_id::bigint is null or c.merchant_id = :merchant_id) and p.renewal
   and a.created_at > c.since + interval '5 minutes' and coalesce(p.period_number >= c.period_number, true)
   and (a.created_at < case when c.state = 'done' then least(c.finished_at, c.due_at)
                            else coalesce(c.finished_at, 'infinity') end - interval '5 minutes'
        or c.type = 'cancel' and c.state = 'done');

-- name: balances_add_up(merchant_id)
-- What changes of plans came to that were prorated, one-off items, and what renewals left or took since, is the balance; of each period
-- the renewal was for its price. A change that was prorated was carried out within the period. What was charged for one at
-- once left the balance, once it was paid and only then; until that is known the subscription waits for it.
with moved as (
    select e.merchant_id, e.subscription_id, sum(e.amount) as amount
      from (select merchant_id, subscription_id, amount
              from subscription_proration
             where :merchant_id::bigint is null or merchant_id = :merchant_id
             union all
            select merchant_id, subscription_id, amount
              from subscription_item
             where (:merchant_id::bigint is null or merchant_id = :merchant_id) and taken_back_at is null
             union all
            select merchant_id, subscription_id, into_balance
              from payment
             where (:merchant_id::bigint is null or merchant_id = :merchant_id) and into_balance <> 0
               and paid_at is not null
             union all
            select merchant_id, subscription_id, - charged
              from subscription_difference
             where (:merchant_id::bigint is null or merchant_id = :merchant_id) and state = 'paid') e
     group by e.merchant_id, e.subscription_id
)
select 'subscription' as table_name, s.merchant_id, s.id,
       format('has a balance of %s, but its changes, items and renewals come to %s', s.balance, coalesce(m.amount, 0)) as detail
  from subscription s
  left join moved m on m.merchant_id = s.merchant_id and m.subscription_id = s.id
 where (:merchant_id::bigint is null or s.merchant_id = :merchant_id)
   and (s.balance <> coalesce(m.amount, 0)
        or s.balance <> 0 and (s.charge_digits is null or s.least_charge is null))
 union all
select 'subscription_proration', n.merchant_id, n.change_id,
       format('is of %s instead of %s at %s, in a period from %s to %s, for change %s to plan %s', n.new_price,
              n.old_price, n.at, n.began_at, n.ends_at, coalesce(c.state, 'none'), v.price)
  from subscription_proration n
  left join subscription_change c
    on c.merchant_id = n.merchant_id and c.id = n.change_id and c.subscription_id = n.subscription_id
  left join package_version v on v.merchant_id = c.merchant_id and v.id = c.package_version_id
 where (:merchant_id::bigint is null or n.merchant_id = :merchant_id)
   and ((c.type, c.state, c.period_number) is distinct from ('change', 'done', n.period_number + 1)
        or case when n.begins then n.new_price not in (0, greatest(n.old_price - n.given_back, 0))
                else v.price is distinct from n.new_price end)
 union all
select 'subscription_difference', d.merchant_id, d.attempt_id,
       format('is %s, %s of %s, but its attempt is %s, its payment of %s paid at %s, in flight is %s, and its change came to '
              '%s', d.state, d.charged, d.amount, coalesce(a.state, 'none'), p.amount, p.paid_at, s.charging_attempt_id,
              n.amount)
  from subscription_difference d
  join subscription s on s.merchant_id = d.merchant_id and s.live = d.live and s.id = d.subscription_id
  left join payment_attempt a on a.merchant_id = d.merchant_id and a.live = d.live and a.id = d.attempt_id
  left join payment p on p.merchant_id = a.merchant_id and p.live = a.live and p.id = a.payment_id
  left join subscription_proration n
    on n.merchant_id = d.merchant_id and n.subscription_id = d.subscription_id and n.change_id = d.change_id
 where (:merchant_id::bigint is null or d.merchant_id = :merchant_id)
   and case d.state
       when 'paid' then (a.state, p.attempt_id, p.amount, p.paid_at is not null, n.amount)
                        is distinct from ('approved', a.id, d.charged, true, d.amount)
       when 'open' then (a.state in ('processing', 'pending', 'challenged'), s.charging_attempt_id)
                        is distinct from (true, d.attempt_id)
       else coalesce(a.state not in ('declined', 'failed', 'abandoned', 'voiding', 'voided'), true) end;

-- name: ends_reported(merchant_id)
-- An expiry is told only if the account asks for it.
select 'subscription' as table_name, s.merchant_id, s.id,
       format('is %s (stopped %s), but %s', s.state, s.date_stopped,
              coalesce(g.event || ' is reported by pingback ' || g.id, 'no pingback reports that')) as detail
  from subscription s
  left join pingback g
    on g.merchant_id = s.merchant_id and g.subscription_id = s.id
   and g.event in ('subscription_cancelled', 'subscription_stopped', 'subscription_expired')
 where (:merchant_id::bigint is null or s.merchant_id = :merchant_id)
   and case s.state
       when 'Cancelled' then g.event is distinct from
           case when s.date_stopped is null then 'subscription_cancelled' else 'subscription_stopped' end
       when 'Expired' then g.event <> 'subscription_expired'
       else g.id is not null
       end;

-- name: numbers_needed(merchant_id)
select 'card' as table_name, merchant_id, id, 'has its number, and nothing needs it' as detail
  from card_number_spare
 where :merchant_id::bigint is null or merchant_id = :merchant_id
 union all
select 'card', s.merchant_id, s.card_id, format('is charged for %s subscriptions', count(*))
  from subscription s
 where (:merchant_id::bigint is null or s.merchant_id = :merchant_id)
   and (s.date_next is not null or s.change_id is not null)
 group by s.merchant_id, s.card_id
having count(*) > 1;

-- name: trials_without_card(merchant_id)
-- What began without a card is in a trial that was free, and is neither charged nor due to be: it waits for its end, or for
-- its pause's. What has a card does not end for want of one, and no account is nobody's who was asked for money.
select 'subscription' as table_name, s.merchant_id, s.id,
       format('has no card, and is %s with a trial of %s for %s, %s regular payments, next %s, in flight %s, waiting for %s',
              s.state, v.trial_length, v.trial_price, s.counter, s.date_next, s.charging_attempt_id,
              coalesce(c.type || ' ' || c.state, 'nothing')) as detail
  from subscription s
  join package_version v on v.merchant_id = s.merchant_id and v.id = s.package_version_id
  left join subscription_change c on c.merchant_id = s.merchant_id and c.id = s.change_id
 where (:merchant_id::bigint is null or s.merchant_id = :merchant_id) and s.acquirer = ''
   and (v.trial_length = 0 or v.trial_price <> 0 or s.counter > 0 or s.failures > 0 or s.date_next is not null
        or s.charging_attempt_id is not null or s.state not in ('Trial', 'Cancelled')
        or s.state = 'Trial' and (c.state is distinct from 'open' or c.type not in ('cancel', 'resume')))
 union all
select 'subscription_change', c.merchant_id, c.id,
       format('ends subscription %s for want of a card, which it has', c.subscription_id)
  from subscription_change c
  join subscription s on s.merchant_id = c.merchant_id and s.live = c.live and s.id = c.subscription_id
 where (:merchant_id::bigint is null or c.merchant_id = :merchant_id)
   and c.asked_by = 'no_card' and c.state in ('open', 'done') and s.acquirer <> ''
 union all
select 'payment_attempt', a.merchant_id, a.id, format('is %s for %s, and no acquirer was asked', a.state, a.amount)
  from payment_attempt a
 where (:merchant_id::bigint is null or a.merchant_id = :merchant_id)
   and a.acquirer = '' and (a.amount <> 0 or a.state <> 'approved');
