-- name: sales(merchant_id, live, before_since, before_until, since, until, by_month, time_zone)
-- What was bought in a period, and in the one before up to a moment, by the merchant's days or months and by currency:
-- the sums of what is closed, what was written down since, and payments themselves of what is not summed. A moment that
-- is within a quarter of an hour parts it: its payments are counted themselves, too.
with closed as materialized (
    select case when :live then closed_until else '-infinity'::timestamptz end as until,
           quarter_of(:before_until) as parted
      from sales_closing
), part as (
    select begins_at as at, currency, successful, volume, failed, refunds, refunded
      from sales_quarter
     where merchant_id = :merchant_id and live and :live and begins_at >= :before_since and begins_at < :until
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
select date_trunc(case when :by_month::boolean then 'month' else 'day' end, at at time zone :time_zone)::date as day,
       currency, sum(successful)::bigint as successful, sum(volume) as volume, sum(failed)::bigint as failed,
       sum(refunds)::bigint as refunds, sum(refunded) as refunded
  from counted
 group by 1, 2
 order by 1, 2;

-- name: declines(merchant_id, live, since, until, currency, newest, most)
-- Why payments of a period failed, of the newest that did; the reason is the last attempt's.
select a.decline_reason as reason, count(*) as payments
  from (select attempt_id
          from payment
         where merchant_id = :merchant_id and live = :live and rare_state = 'declined'
           and created_at >= :since and created_at < :until and currency = :currency
         order by created_at desc, id desc
         limit :newest) failed
  join payment_attempt a on a.merchant_id = :merchant_id and a.live = :live and a.id = failed.attempt_id
 group by a.decline_reason
 order by payments desc, reason
 limit :most;

-- name: recurring(merchant_id, live)
-- Running subscriptions by currency; they are counted by their terms first, so that few terms are looked up.
with running as (
    select package_version_id,
           count(*) filter (where state = 'Active') as active,
           count(*) filter (where state = 'Trial') as trials,
           count(*) filter (where failures > 0) as failing
      from subscription
     where merchant_id = :merchant_id and live = :live and state in ('Trial', 'Active')
     group by package_version_id
)
select v.currency, sum(r.active)::bigint as active, sum(r.trials)::bigint as trials, sum(r.failing)::bigint as failing
  from running r
  join package_version v on v.merchant_id = :merchant_id and v.live = :live and v.id = r.package_version_id
 group by v.currency
 order by v.currency;

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
