-- name: sales(merchant_id, live, before_since, before_until, since, until, days, begins)
-- What was bought in a period, and in the one before up to a moment, by the merchant's days or months and by currency:
-- the sums of what is closed, what was written down since, and payments themselves of what is not summed. Of a day, UTC,
-- that lies within one of the merchant's days or months its own sum is read, of others those of its quarters of an hour. A
-- moment that is within a quarter of an hour parts it: its payments are counted themselves, too.
with closed as materialized (
    select case when :live then closed_until else '-infinity'::timestamptz end as until,
           quarter_of(:before_until) as parted
      from sales_closing
), touched as materialized (
    select day, begins_at,
           (begins_at >= :since or ends_at <= (select parted from closed))
           and begins_at >= :before_since and ends_at <= :until
           and width_bucket(begins_at, :begins::timestamptz[])
               = width_bucket(ends_at - interval '15 minutes', :begins::timestamptz[]) as is_whole
      from (select day, day::timestamp at time zone 'UTC' as begins_at,
                   (day + 1)::timestamp at time zone 'UTC' as ends_at
              from unnest(array(select (:before_since::timestamptz at time zone 'UTC')::date + number
                                  from generate_series(0, (:until::timestamptz at time zone 'UTC')::date
                                                          - (:before_since::timestamptz at time zone 'UTC')::date)
                                       as number)) as day) utc
), part as (
    select t.begins_at as at, d.currency, d.successful, d.volume, d.failed, d.refunds, d.refunded
      from touched t
      join sales_day d on d.merchant_id = :merchant_id and d.live and d.day = t.day
     where :live and t.is_whole
     union all
    select q.begins_at, q.currency, q.successful, q.volume, q.failed, q.refunds, q.refunded
      from touched t
      join sales_quarter q
        on q.merchant_id = :merchant_id and q.live and q.begins_at >= greatest(t.begins_at, :before_since)
       and q.begins_at < least(t.begins_at + interval '1 day', :until)
     where :live and not t.is_whole
     union all
    select begins_at, currency, successful, volume, failed, refunds, refunded
      from sales_change
     where merchant_id = :merchant_id and live and :live and begins_at >= :before_since and begins_at < :until
       and begins_at < (select until from closed)
), counted as (
    select at, currency, successful, volume, failed, refunds, refunded
      from part
     where at >= :since or at < (select parted from closed)
     union all
    select created_at, currency, successful, volume, failed, refunds, refunded
      from payment_sold
     where merchant_id = :merchant_id and live = :live and created_at < :until
       and created_at >= greatest(:before_since, (select until from closed))
       and (created_at >= :since or created_at < :before_until)
     union all
    select created_at, currency, successful, volume, failed, refunds, refunded
      from payment_sold
     where merchant_id = :merchant_id and live = :live and created_at < :before_until
       and created_at >= greatest(:before_since, (select parted from closed))
       and created_at < (select until from closed)
)
select (:days::date[])[width_bucket(at, :begins::timestamptz[])] as day,
       currency, sum(successful)::bigint as successful, sum(volume) as volume, sum(failed)::bigint as failed,
       sum(refunds)::bigint as refunds, sum(refunded) as refunded
  from counted
 group by 1, 2
 order by 1, 2;

-- name: declines(merchant_id, live, since, until, currency, newest, most)
-- Why payments of a period failed, of the newest that did; the reason is the last attempt's. (All of those attempts are
-- looked for at once: in one walk along the index.)
select a.decline_reason as reason, count(*) as payments
  from payment_attempt a
 where a.merchant_id = :merchant_id and a.live = :live
   and a.id = any(array(select attempt_id
                          from payment
                         where merchant_id = :merchant_id and live = :live and rare_state = 'declined'
                           and created_at >= :since and created_at < :until and currency = :currency
                         order by created_at desc, id desc
                         limit :newest))
 group by a.decline_reason
 order by payments desc, reason
 limit :most;

-- name: recurring(merchant_id, live)
-- Running subscriptions by currency. Where all terms have one currency, as of most shops, the active ones are those of the
-- side that are not of another state, so that indexes tell their number; else they are counted by their terms first, so
-- that few terms are looked up.
with known as materialized (
    select min(currency) as currency, min(currency) = max(currency) as is_only
      from package_version
     where merchant_id = :merchant_id and live = :live
), by_terms as (
    select package_version_id, count(*) as active, 0 as trials, 0 as failing
      from subscription
     where merchant_id = :merchant_id and live = :live and state = 'Active' and not (select is_only from known)
     group by package_version_id
     union all
    select package_version_id, 0, count(*), 0
      from subscription
     where merchant_id = :merchant_id and live = :live and state = 'Trial' and state <> 'Active'
     group by package_version_id
     union all
    select package_version_id, 0, 0, count(*)
      from subscription
     where merchant_id = :merchant_id and live = :live and failures > 0 and state in ('Trial', 'Active')
     group by package_version_id
), counted as (
    select currency,
           (select count(*) from subscription where merchant_id = :merchant_id and live = :live)
           - (select count(*)
                from subscription
               where merchant_id = :merchant_id and live = :live and state <> 'Active') as active, 0 as trials, 0 as failing
      from known
     where is_only
     union all
    select v.currency, t.active, t.trials, t.failing
      from by_terms t
      join package_version v on v.merchant_id = :merchant_id and v.live = :live and v.id = t.package_version_id
)
select currency, sum(active)::bigint as active, sum(trials)::bigint as trials, sum(failing)::bigint as failing
  from counted
 group by currency
having sum(active) + sum(trials) > 0
 order by currency;

-- name: pingback_health(merchant_id, live, since, until)^
-- How many pingbacks of a period were to be sent, and of the unusual states: the rest is acknowledged.
select (select count(*) from pingback
         where merchant_id = :merchant_id and live = :live and created_at >= :since and created_at < :until)
       - count(*) filter (where state = 'muted') as total,
       count(*) filter (where state = 'waiting') as waiting,
       count(*) filter (where state = 'due') as due,
       count(*) filter (where state = 'exhausted') as exhausted
  from pingback
 where merchant_id = :merchant_id and live = :live and state in ('waiting', 'due', 'exhausted', 'muted')
   and state <> 'acknowledged' and created_at >= :since and created_at < :until;

-- name: has_payments(merchant_id, live)$
select exists (select from payment where merchant_id = :merchant_id and live = :live);
