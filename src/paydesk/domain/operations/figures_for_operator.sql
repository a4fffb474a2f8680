-- Live money as an operator reads it, by the sums that are kept (0455_sales_sums.sql): those of whole days, what was
-- written down since, and the payments of the last hour themselves. (Of a time between two bounds that it doesn't know the
-- planner counts on few rows, of one above a bound on a third of the table.)

-- name: sales_of_merchants(merchant_ids, since)
-- What some merchants sold since the beginning of a day, UTC, by currency.
with closed as materialized (
    select closed_until as until from sales_closing
)
select m.id as merchant_id, s.currency, sum(s.successful)::bigint as successful, sum(s.volume) as volume,
       sum(s.failed)::bigint as failed, sum(s.refunds)::bigint as refunds, sum(s.refunded) as refunded
  from unnest(:merchant_ids::bigint[]) as m (id)
 cross join lateral (
     select currency, successful, volume, failed, refunds, refunded
       from sales_day
      where merchant_id = m.id and live and day >= (:since::timestamptz at time zone 'UTC')::date
      union all
     select currency, successful, volume, failed, refunds, refunded
       from sales_change
      where merchant_id = m.id and live and begins_at >= :since and begins_at < (select until from closed)
      union all
     select currency, successful, volume, failed, refunds, refunded
       from payment_sold
      where merchant_id = m.id and live and created_at >= greatest(:since, (select until from closed))
        and created_at < (select 'infinity'::timestamptz)
 ) s
 group by m.id, s.currency
having sum(s.successful) + sum(s.failed) > 0
 order by m.id, sum(s.successful) desc, s.currency;

-- name: held_for_merchants(merchant_ids)
-- What some merchants have, by currency.
select m.id as merchant_id, b.currency,
       coalesce(-sum(b.amount) filter (where b.account = 'pending'), 0) as pending,
       coalesce(-sum(b.amount) filter (where b.account = 'available'), 0) as available,
       coalesce(-sum(b.amount) filter (where b.account = 'reserve'), 0) as reserve
  from unnest(:merchant_ids::bigint[]) as m (id)
 cross join lateral balance_parts(m.id, true) b
 group by m.id, b.currency
having sum(abs(b.amount)) > 0
 order by m.id, b.currency;

-- name: standings_of_merchants(merchant_ids, since, newest)
-- When somebody paid last, looked for among the newest payments and then among the days that are summed, and how many
-- payments their customers' banks dispute since a time.
select m.id as merchant_id,
       coalesce((select max(created_at)
                   from (select state, created_at
                           from payment
                          where merchant_id = m.id and live
                          order by created_at desc, id desc
                          limit :newest) one
                  where state in ('captured', 'partially_refunded', 'refunded', 'charged_back')),
                greatest((select max(day)::timestamp at time zone 'UTC'
                            from sales_day
                           where merchant_id = m.id and live and successful > 0),
                         (select max(begins_at)
                            from sales_change
                           where merchant_id = m.id and live and successful > 0))) as last_paid_at,
       (select count(*) from chargeback where merchant_id = m.id and live and opened_at >= :since) as disputes
  from unnest(:merchant_ids::bigint[]) as m (id);

-- name: sales_of_all(since)
-- What all merchants sold since the beginning of a day, by days, UTC, and currency.
with closed as materialized (
    select closed_until as until from sales_closing
), part as (
    select day, currency, successful, volume, failed, refunds, refunded
      from sales_of_all
     where live and day >= (:since::timestamptz at time zone 'UTC')::date
     union all
    select (begins_at at time zone 'UTC')::date, currency, successful, volume, failed, refunds, refunded
      from sales_change
     where live and begins_at >= :since and begins_at < (select until from closed)
     union all
    select (s.created_at at time zone 'UTC')::date, s.currency, s.successful, s.volume, s.failed, s.refunds, s.refunded
      from merchant m
     cross join lateral (
         select created_at, currency, successful, volume, failed, refunds, refunded
           from payment_sold
          where merchant_id = m.id and live and created_at >= greatest(:since, (select until from closed))
            and created_at < (select 'infinity'::timestamptz)
     ) s
)
select day, currency, sum(successful)::bigint as successful, sum(volume) as volume, sum(failed)::bigint as failed,
       sum(refunds)::bigint as refunds, sum(refunded) as refunded
  from part
 group by day, currency
 order by day, currency;

-- name: held_for_all()
-- What all merchants have together, by currency.
select b.currency,
       coalesce(-sum(b.amount) filter (where b.account = 'pending'), 0) as pending,
       coalesce(-sum(b.amount) filter (where b.account = 'available'), 0) as available,
       coalesce(-sum(b.amount) filter (where b.account = 'reserve'), 0) as reserve
  from merchant m
 cross join lateral balance_parts(m.id, true) b
 group by b.currency
having sum(abs(b.amount)) > 0
 order by b.currency;

-- name: crowd(since)^
-- How many merchants there are, live ones, new ones and suspended ones, and disputes since a time.
select (select count(*) from merchant where went_live_at is not null) as live,
       (select count(*) from merchant where went_live_at >= :since) as new,
       (select count(*) from merchant where suspended_at is not null) as suspended,
       (select count(*) from chargeback where live and opened_at >= :since) as disputes;
