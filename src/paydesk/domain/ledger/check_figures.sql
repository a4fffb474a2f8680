-- Rules about figures, dates and texts that are kept beside what they follow from; each as in check_payments.sql.

-- name: postings_whole(merchant_id)
-- A posting is one event of one payment or payout: money never changes its currency, nor its owner, within the ledger.
-- It has an entry with the acquirer or of what is available: no money moves between the other accounts alone.
with posting as (
    select merchant_id, live, posting_id, min(id) as id, min(kind) as kind, count(distinct kind) as kinds,
           count(distinct currency) as currencies, min(currency) as currency, max(payment_id) as payment_id,
           count(distinct coalesce(payment_id, -payout_id)) as owners, max(payout_id) as payout_id,
           count(*) filter (where account in ('acquirer', 'available')) as found_by, count(distinct at) as times
      from ledger_entry
     where (:merchant_id::bigint is null or merchant_id = :merchant_id)
     group by merchant_id, live, posting_id
)
select 'ledger_entry' as table_name, l.merchant_id, l.id,
       format('begins posting %s, which has %s kinds, %s currencies (%s), %s owners, %s times and %s entries with the '
              'acquirer or available; its %s is of %s', l.posting_id, l.kinds, l.currencies, l.currency, l.owners, l.times,
              l.found_by, case when l.payout_id is null then 'payment' else 'payout' end,
              coalesce(p.currency, o.currency, 'no known currency')) as detail
  from posting l
  left join payment p on p.merchant_id = l.merchant_id and p.id = l.payment_id
  left join payout o on o.merchant_id = l.merchant_id and o.id = l.payout_id
 where l.kinds <> 1 or l.currencies <> 1 or l.owners <> 1 or l.times <> 1 or l.found_by = 0
    or l.currency is distinct from coalesce(p.currency, o.currency);

-- name: payouts_posted(merchant_id)
-- What was sent to a merchant left its available balance once, in full, and nothing else did so in a payout's name.
with posted as (
    select merchant_id, live, payout_id, count(distinct posting_id) as postings, count(*) as entries,
           coalesce(sum(amount) filter (where account = 'available'), 0) as available,
           coalesce(sum(amount) filter (where account = 'bank'), 0) as bank
      from ledger_entry
     where (:merchant_id::bigint is null or merchant_id = :merchant_id) and kind = 'payout'
     group by merchant_id, live, payout_id
), sent as (
    select merchant_id, live, id as payout_id, amount
      from payout
     where :merchant_id::bigint is null or merchant_id = :merchant_id
)
select 'payout' as table_name, merchant_id, payout_id as id,
       case when s.amount is null
                then format('does not exist, but a posting takes %s from what is available', l.available)
            else format('of %s has %s postings, which take %s from what is available and debit %s to the bank',
                        s.amount, coalesce(l.postings, 0), coalesce(l.available, 0), coalesce(l.bank, 0))
        end as detail
  from sent s
  full join posted l using (merchant_id, live, payout_id)
 where (l.postings, l.entries, l.available, l.bank) is distinct from (1::bigint, 2::bigint, s.amount, -s.amount);

-- name: uncaptured_unposted(merchant_id)
-- Of a payment whose money was never taken nothing can be given back, settle or be released. (A bank may charge an attempt
-- back whose money the payment does not have: `chargebacks_posted` compares that.)
with posted as (
    select merchant_id, live, payment_id, sum(abs(amount)) as moved
      from ledger_entry
     where (:merchant_id::bigint is null or merchant_id = :merchant_id)
       and payment_id is not null and kind not in ('chargeback', 'chargeback_fee', 'chargeback_reversal')
     group by merchant_id, live, payment_id
)
select 'payment' as table_name, p.merchant_id, p.id,
       format('is %s, but %s of it is taken back, %s reserved for refunds, and its ledger entries move %s', p.state,
              p.refunded + p.charged_back, p.refunding, coalesce(l.moved, 0)) as detail
  from payment p
  left join posted l on l.merchant_id = p.merchant_id and l.live = p.live and l.payment_id = p.id
 where (:merchant_id::bigint is null or p.merchant_id = :merchant_id)
   and p.state not in ('captured', 'partially_refunded', 'refunded', 'charged_back')
   and (l.moved is not null
        or p.refunded + p.refunding + p.charged_back <> 0
        or p.pending_taken <> 0 or p.reserve_taken <> 0 or p.fees_taken <> 0
        or coalesce(p.settled_at, p.reserve_released_at, p.funds_due_at) is not null);

-- name: funds_settle(merchant_id)
-- Captured money has a day on which its next part becomes available, in the range that an account may choose, until all
-- of it is.
select 'payment' as table_name, merchant_id, id,
       format('was captured at %s and settled at %s, its reserve of %s released at %s: its next part becomes available '
              'at %s', captured_at, coalesce(settled_at::text, 'no time'), reserve - reserve_taken,
              coalesce(reserve_released_at::text, 'no time'), coalesce(funds_due_at::text, 'no time')) as detail
  from payment
 where (:merchant_id::bigint is null or merchant_id = :merchant_id)
   and state in ('captured', 'partially_refunded', 'refunded', 'charged_back') and amount > 0
   and case when settled_at is null
                then coalesce(funds_due_at > captured_at + interval '366 days', true) or reserve_released_at is not null
            when reserve_released_at is null and reserve > reserve_taken
                then coalesce(funds_due_at > captured_at + interval '3651 days', true)
            -- All of the reserve was taken back after the day of its release was set: there is nothing to wait for.
            else reserve_released_at is not null and funds_due_at is not null
        end;

-- name: payments_found(merchant_id)
-- What a payment is looked for by is what it says itself: a list by states would leave it out otherwise, or its money would
-- never move on.
select 'payment' as table_name, merchant_id, id,
       format('is %s and found as %s; its money moves on at %s and is looked for from %s on', state,
              coalesce(rare_state, 'one of most'), coalesce(funds_due_at::text, 'no time'),
              coalesce(funds_look_at::text, 'no time')) as detail
  from payment
 where (:merchant_id::bigint is null or merchant_id = :merchant_id)
   and (rare_state is distinct from rare_state(state)
        or funds_due_at is not null and coalesce(funds_look_at > funds_due_at, true));

-- name: payloads_agree(merchant_id)
-- What a pingback tells is what the books say: the payment's own figures, and the amount that was given back.
with told as (
    select g.merchant_id, g.live, g.id, g.event, g.payment_id, g.subscription_id, g.reversal_id,
           json_or_null(g.payload) as body
      from pingback g
     where :merchant_id::bigint is null or g.merchant_id = :merchant_id
), said as (
    select told.*, body -> 'payment_order' as said,
           case when jsonb_typeof(body #> '{payment_order,refund_amount}') = 'number'
                    then (body #>> '{payment_order,refund_amount}')::numeric end as refund_amount,
           case when jsonb_typeof(body #> '{payment_order,chargeback_amount}') = 'number'
                    then (body #>> '{payment_order,chargeback_amount}')::numeric end as chargeback_amount
      from told
)
select 'pingback' as table_name, t.merchant_id, t.id,
       case when t.body is null then 'its text is no JSON'
            when coalesce(t.body #>> '{subscription,id}', '')
                 <> coalesce(case when t.event = 'payment' then p.subscription_id else t.subscription_id end::text, '')
                then format('tells of subscription %s, not of %s', t.body #>> '{subscription,id}',
                            coalesce(p.subscription_id, t.subscription_id))
            else format('tells of payment %s (%s) %s %s with net %s, reserve %s, fees %s, given back %s, but payment %s '
                        '(%s) is of %s %s with %s, %s, %s, given back %s', t.said ->> 'id',
                        t.said ->> 'merchant_order_id', t.said ->> 'paid_amount', t.said ->> 'paid_currency',
                        t.said ->> 'merchant_net_revenue', t.said ->> 'merchant_rolling_reserve', t.said ->> 'fees',
                        coalesce(t.refund_amount, t.chargeback_amount), p.id, p.merchant_order_id, p.amount, p.currency,
                        p.net, p.reserve, p.fees, coalesce(m.amount, case when t.event = 'chargeback_reversed' then c.returned else c.taken end))
        end as detail
  from said t
  left join payment p on p.merchant_id = t.merchant_id and p.live = t.live and p.id = t.payment_id
  left join movement m on m.merchant_id = t.merchant_id and m.id = t.reversal_id
  left join chargeback c on c.merchant_id = t.merchant_id and c.id = t.reversal_id
 where t.body is null
    or t.body ->> 'event' is distinct from t.event
    or case when t.event = 'payment' then p.subscription_id else t.subscription_id end
       <> coalesce((jsonb_path_query_first(t.body, '$.subscription.id ? (@.type() == "number")'))::numeric, 0)
    or p.id is not null
       and ((t.said -> 'id', t.said ->> 'merchant_order_id', t.said -> 'paid_amount', t.said ->> 'paid_currency',
             t.said -> 'merchant_net_revenue', t.said -> 'merchant_rolling_reserve', t.said -> 'fees')
            is distinct from
            (to_jsonb(p.id), p.merchant_order_id, to_jsonb(p.amount), p.currency,
             to_jsonb(p.net), to_jsonb(p.reserve), to_jsonb(p.fees))
            or t.reversal_id is not null and t.said -> 'reference_id' is distinct from to_jsonb(t.reversal_id)
            or t.event in ('refund', 'partial_refund', 'refund_failed') and t.refund_amount is distinct from m.amount
            or t.event = 'chargeback'
               and not coalesce(case when c.takes = 1 then t.chargeback_amount = c.taken
                                     else t.chargeback_amount > 0 and t.chargeback_amount <= c.taken end, false)
            or t.event = 'chargeback_reversed'
               and not coalesce(case when c.returns = 1 then t.chargeback_amount = c.returned
                                     else t.chargeback_amount > 0 and t.chargeback_amount <= c.returned end, false));

-- name: dates_in_range(now, merchant_id, resend_interval, time_to_ship, longest_pause, longest_dunning)
-- What is due is due soon: no date is so far ahead that nobody would ever look at it again. Each side has its own time.
with side as (
    select id as merchant_id, true as live, :now::timestamptz as now from merchant
     where :merchant_id::bigint is null or id = :merchant_id
     union all
    select id, false, :now::timestamptz + side_clock(false, test_clock) from merchant
     where :merchant_id::bigint is null or id = :merchant_id
), dated as (
    select 'pingback' as table_name, s.merchant_id, g.id, 'due_at' as what, g.due_at as at,
           g.created_at - interval '1 day' as earliest,
           greatest(s.now, g.created_at + (g.attempts + 1) * (:resend_interval::interval + interval '1 minute')) + interval '1 day' as latest
      from side s
      join pingback g on g.merchant_id = s.merchant_id and g.live = s.live and g.state = 'due'
     union all
    select 'payment_attempt', s.merchant_id, a.id, 'lookup_at', a.lookup_at, '-infinity',
           greatest(:now::timestamptz, a.not_after) + interval '2 days'
      from side s
      join payment_attempt a on a.merchant_id = s.merchant_id and a.live = s.live and a.lookup_at is not null
     union all
    select 'movement', s.merchant_id, m.id, 'lookup_at', m.lookup_at, '-infinity',
           greatest(s.now, m.created_at) + interval '2 days'
      from side s
      join movement m on m.merchant_id = s.merchant_id and m.live = s.live and m.lookup_at is not null
     union all
    select 'card_change', s.merchant_id, c.id, 'lookup_at', c.lookup_at, '-infinity',
           greatest(:now::timestamptz, c.not_after) + interval '2 days'
      from side s
      join card_change c on c.merchant_id = s.merchant_id and c.live = s.live and c.lookup_at is not null
     union all
    select 'payment', s.merchant_id, p.id, 'ship_by', p.ship_by, p.paid_at,
           p.paid_at + :time_to_ship::interval + interval '1 hour'
      from side s
      join payment p on p.merchant_id = s.merchant_id and p.live = s.live and p.ship_by is not null
     union all
    select 'payment', s.merchant_id, p.id, 'shipping_due_at', p.shipping_due_at, '-infinity',
           greatest(s.now, p.ship_by) + interval '1 day'
      from side s
      join payment p on p.merchant_id = s.merchant_id and p.live = s.live and p.shipping_due_at is not null
     union all
    -- The calendar's own day (counted by UTC it may be some days earlier: where a merchant's March begins it is still
    -- February by that), or soon after a charge that failed by now: a pause later, of those that it can have, or as late
    -- as its plan may be.
    select 'subscription', s.merchant_id, u.id, 'date_next', u.date_next, u.date_start - interval '1 day',
           greatest(s.now + case when u.failures = 0 or u.dunning is null then :longest_pause::interval
                                 else :longest_dunning::interval end - interval '1 day',
                    u.anchor + (u.next_period - 1 + coalesce(u.skipped, 0))
                               * (v.period_length || ' ' || v.period_unit)::interval)
           + interval '5 days'
      from side s
      join subscription u on u.merchant_id = s.merchant_id and u.live = s.live and u.date_next is not null
      join package_version v on v.merchant_id = u.merchant_id and v.id = u.package_version_id
     union all
    select 'subscription', s.merchant_id, u.id, 'date_end', u.date_end, u.date_start,
           u.anchor + (v.payment_limit + coalesce(u.skipped, 0))
                      * (v.period_length || ' ' || v.period_unit)::interval + interval '5 days'
      from side s
      join subscription u on u.merchant_id = s.merchant_id and u.live = s.live and u.date_end is not null
      join package_version v on v.merchant_id = u.merchant_id and v.id = u.package_version_id
     union all
    select 'subscription_change', s.merchant_id, c.id, 'due_at', c.due_at, c.since, c.created_at + interval '3654 days'
      from side s
      join subscription_change c
        on c.merchant_id = s.merchant_id and c.live = s.live and c.state = 'open' and c.due_at is not null
     union all
    select 'mail', s.merchant_id, i.id, 'due_at', i.due_at, i.created_at - interval '1 day',
           :now::timestamptz + interval '2 days'
      from side s
      join mail i on i.merchant_id = s.merchant_id and i.live = s.live and i.state = 'due'
)
select table_name, merchant_id, id, format('has %s %s, not from %s to %s', what, at, earliest, latest) as detail
  from dated
 where at < earliest or at > latest;

-- name: mrr_adds_up(merchant_id)
-- The movements of a subscription sum to what it brings in a month now, and those of a day that are folded are its sums:
-- so the movements of any range are the difference between its ends.
with stands as (
    select m.merchant_id, m.live, m.subscription_id, sum(m.amount) as amount, min(m.currency) as currency,
           count(distinct m.currency) as currencies
      from mrr_movement m
     where :merchant_id::bigint is null or m.merchant_id = :merchant_id
     group by m.merchant_id, m.live, m.subscription_id
), folded as (
    select m.merchant_id, m.live, m.currency, m.day, m.kind, m.began, sum(m.amount) as amount, count(*) as movements,
           min(m.subscription_id) as subscription_id
      from mrr_movement m
     where (:merchant_id::bigint is null or m.merchant_id = :merchant_id) and m.folded
     group by m.merchant_id, m.live, m.currency, m.day, m.kind, m.began
), summed as (
    select *
      from mrr_day
     where :merchant_id::bigint is null or merchant_id = :merchant_id
)
select 'subscription' as table_name, s.merchant_id, s.id,
       format('brings %s %s in a month, but its movements sum to %s %s', n.amount, v.currency, coalesce(t.amount, 0),
              t.currency) as detail
  from subscription s
  join package_version v on v.merchant_id = s.merchant_id and v.id = s.package_version_id
 cross join lateral (
     select mrr_now(s.merchant_id, s.state, s.package_version_id, s.change_id) as amount
 ) n
  left join stands t on t.merchant_id = s.merchant_id and t.live = s.live and t.subscription_id = s.id
 where (:merchant_id::bigint is null or s.merchant_id = :merchant_id)
   and (coalesce(t.amount, 0) <> n.amount or t.currency <> v.currency or t.currencies > 1)
 union all
select 'mrr_day', merchant_id, f.subscription_id,
       format('%s of %s, %s: %s movements sum to %s %s, but %s to %s are kept', kind, day, began,
              coalesce(f.movements, 0), coalesce(f.amount, 0), currency, coalesce(d.movements, 0), coalesce(d.amount, 0))
  from folded f
  full join summed d using (merchant_id, live, currency, day, kind, began)
 where (f.amount, f.movements) is distinct from (d.amount, d.movements);

-- name: reserves_add_up(merchant_id)
-- What is kept of when the reserve is released, with the changes to it, is what the payments that have settled hold.
with held as (
    select merchant_id, live, currency, quarter_of(funds_due_at) as due_at, sum(reserve - reserve_taken) as amount,
           min(id) as id
      from payment
     where (:merchant_id::bigint is null or merchant_id = :merchant_id)
       and settled_at is not null and funds_due_at is not null
     group by merchant_id, live, currency, quarter_of(funds_due_at)
), kept as (
    select merchant_id, live, currency, due_at, sum(amount) as amount, min(payment_id) as id
      from (select merchant_id, live, currency, due_at, amount, null::bigint as payment_id from reserve_due
             union all
            select merchant_id, live, currency, due_at, amount, payment_id from reserve_change) k
     where :merchant_id::bigint is null or merchant_id = :merchant_id
     group by merchant_id, live, currency, due_at
)
select 'payment' as table_name, merchant_id, coalesce(h.id, k.id, 0) as id,
       format('is one of those that release %s %s from %s on, but %s are kept of them', coalesce(h.amount, 0), currency,
              due_at, coalesce(k.amount, 0)) as detail
  from held h
  full join kept k using (merchant_id, live, currency, due_at)
 where coalesce(h.amount, 0) <> coalesce(k.amount, 0);

-- name: sales_add_up(merchant_id)
-- What is kept of sales, with what was written down since, is what the payments of the time that is closed say; days are
-- the sums of their quarters, and those of all merchants the sums of theirs.
with closed as materialized (
    select closed_until from sales_closing
), sold as (
    select merchant_id, begins_at, currency, sum(successful) as successful, sum(volume) as volume, sum(failed) as failed,
           sum(refunds) as refunds, sum(refunded) as refunded, min(id) as id
      from payment_sold
     where (:merchant_id::bigint is null or merchant_id = :merchant_id)
       and live and created_at < (select closed_until from closed)
     group by merchant_id, begins_at, currency
), kept as (
    select merchant_id, begins_at, currency, sum(successful) as successful, sum(volume) as volume, sum(failed) as failed,
           sum(refunds) as refunds, sum(refunded) as refunded, min(payment_id) as id
      from (select merchant_id, begins_at, currency, successful, volume, failed, refunds, refunded, null as payment_id
              from sales_quarter
             union all
            select merchant_id, begins_at, currency, successful, volume, failed, refunds, refunded, payment_id
              from sales_change
             where begins_at < (select closed_until from closed)) k
     where :merchant_id::bigint is null or merchant_id = :merchant_id
     group by merchant_id, begins_at, currency
), quarters as (
    select merchant_id, (begins_at at time zone 'UTC')::date as day, currency, sum(successful) as successful,
           sum(volume) as volume, sum(failed) as failed, sum(refunds) as refunds, sum(refunded) as refunded
      from sales_quarter
     where :merchant_id::bigint is null or merchant_id = :merchant_id
     group by merchant_id, (begins_at at time zone 'UTC')::date, currency
), days as (
    select *
      from sales_day
     where :merchant_id::bigint is null or merchant_id = :merchant_id
), of_days as (
    select day, currency, sum(successful) as successful, sum(volume) as volume, sum(failed) as failed,
           sum(refunds) as refunds, sum(refunded) as refunded
      from sales_day
     where :merchant_id::bigint is null
     group by day, currency
), of_all as (
    select *
      from sales_of_all
     where :merchant_id::bigint is null
)
select 'payment' as table_name, merchant_id, coalesce(s.id, k.id, 0) as id,
       format('is one of those from %s on in %s: %s payments of %s, %s failed and %s given back, of %s; but %s of %s, %s '
              'and %s of %s are kept of them', begins_at, currency, coalesce(s.successful, 0), coalesce(s.volume, 0),
              coalesce(s.failed, 0), coalesce(s.refunds, 0), coalesce(s.refunded, 0), coalesce(k.successful, 0),
              coalesce(k.volume, 0), coalesce(k.failed, 0), coalesce(k.refunds, 0), coalesce(k.refunded, 0)) as detail
  from sold s
  full join kept k using (merchant_id, begins_at, currency)
 where (coalesce(s.successful, 0), coalesce(s.volume, 0), coalesce(s.failed, 0), coalesce(s.refunds, 0),
        coalesce(s.refunded, 0))
       <> (coalesce(k.successful, 0), coalesce(k.volume, 0), coalesce(k.failed, 0), coalesce(k.refunds, 0),
           coalesce(k.refunded, 0))
 union all
select 'sales_day', merchant_id, 0, format('%s in %s: %s of %s are kept, but its quarters of an hour sum to %s of %s', day,
                                           currency, d.successful, d.volume, q.successful, q.volume)
  from quarters q
  full join days d using (merchant_id, day, currency)
 where (q.successful, q.volume, q.failed, q.refunds, q.refunded)
       is distinct from (d.successful, d.volume, d.failed, d.refunds, d.refunded)
 union all
select 'sales_of_all', 0, 0, format('%s in %s: %s of %s are kept, but merchants'' days sum to %s of %s', day, currency,
                                    a.successful, a.volume, d.successful, d.volume)
  from of_days d
  full join of_all a using (day, currency)
 where (d.successful, d.volume, d.failed, d.refunds, d.refunded)
       is distinct from (a.successful, a.volume, a.failed, a.refunds, a.refunded);
