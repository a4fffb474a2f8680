-- name: ahead(young)$
-- From when on nothing may be in the sums, if they contain times that are to come since the database's clock was put back:
-- the beginning of yesterday, which is summed once more as it is over. So nothing is missed if a worker looks within a day.
select date_trunc('day', clock_timestamp() - interval '1 day', 'UTC')
  from sales_closing
 where closed_until > clock_timestamp() - :young::interval
   for update skip locked;

-- name: open_again(until)!
-- A statement of its own, later than the one that has the lock: it sees all that was summed before it.
with quarters as (
    delete from sales_quarter q
     using merchant m
     where q.merchant_id = m.id and q.live and q.begins_at >= :until
), days as (
    delete from sales_day d
     using merchant m
     where d.merchant_id = m.id and d.live and d.day >= (:until::timestamptz at time zone 'UTC')::date
), together as (
    delete from sales_of_all
     where live and day >= (:until::timestamptz at time zone 'UTC')::date
)
update sales_closing set closed_until = :until;

-- name: closable(over_for)^
-- Which span of time the sums may take next, a day at most, which begins at the first payment there is. None if nothing is
-- over for long enough, somebody else is summing, or one who might not have written down what they change is not through:
-- that is who writes into the payments since a quarter of an hour after the span, or longer.
with wanted as materialized (
    select c.closed_until,
           least(quarter_of(clock_timestamp() - :over_for::interval),
                 date_trunc('day', case when c.closed_until > '-infinity' then c.closed_until
                                        else (select min(one.created_at)
                                                from merchant m
                                               cross join lateral (
                                                   select created_at
                                                     from payment
                                                    where merchant_id = m.id and live
                                                    order by created_at
                                                    limit 1) one) end, 'UTC') + interval '1 day') as next_until
      from sales_closing c
       for update of c skip locked
)
select closed_until, next_until
  from wanted w
 where next_until > closed_until
   and not exists (select
                     from pg_locks l
                     left join pg_stat_activity a on a.pid = l.pid
                    where l.relation = 'payment'::regclass and l.mode = 'RowExclusiveLock'
                      and l.database = (select oid from pg_database where datname = current_database())
                      and coalesce(a.xact_start <= w.next_until + interval '15 minutes', true));

-- name: close_sales(next_until, closed_until)!
-- A statement of its own, later than the one that found it closable: it sees all that had ended by then. What was written
-- down of earlier spans is added; of this one it is in the payments already. Sums are written in one order.
with moved as (
    delete from sales_change
     where begins_at < :next_until
 returning *
), summed as materialized (
    select merchant_id, begins_at, currency, sum(successful) as successful, sum(volume) as volume, sum(failed) as failed,
           sum(refunds) as refunds, sum(refunded) as refunded
      from (select m.id as merchant_id, s.begins_at, s.currency, s.successful, s.volume, s.failed, s.refunds, s.refunded
              from merchant m
             cross join lateral (
                 select begins_at, currency, sum(successful) as successful, sum(volume) as volume,
                        sum(failed) as failed, sum(refunds) as refunds, sum(refunded) as refunded
                   from payment_sold
                  where merchant_id = m.id and live and created_at >= :closed_until and created_at < :next_until
                  group by begins_at, currency
             ) s
             union all
            select merchant_id, begins_at, currency, successful, volume, failed, refunds, refunded
              from moved
             where begins_at < :closed_until) part
     group by merchant_id, begins_at, currency
), quarters as (
    insert into sales_quarter as q (merchant_id, live, begins_at, currency, successful, volume, failed, refunds, refunded)
    select merchant_id, true, begins_at, currency, successful, volume, failed, refunds, refunded
      from summed
     order by merchant_id, begins_at, currency
        on conflict (merchant_id, live, begins_at, currency) do update
           set successful = q.successful + excluded.successful, volume = q.volume + excluded.volume,
               failed = q.failed + excluded.failed, refunds = q.refunds + excluded.refunds,
               refunded = q.refunded + excluded.refunded
), days as (
    insert into sales_day as d (merchant_id, live, day, currency, successful, volume, failed, refunds, refunded)
    select merchant_id, true, (begins_at at time zone 'UTC')::date, currency, sum(successful), sum(volume), sum(failed),
           sum(refunds), sum(refunded)
      from summed
     group by merchant_id, (begins_at at time zone 'UTC')::date, currency
     order by 1, 3, 4
        on conflict (merchant_id, live, day, currency) do update
           set successful = d.successful + excluded.successful, volume = d.volume + excluded.volume,
               failed = d.failed + excluded.failed, refunds = d.refunds + excluded.refunds,
               refunded = d.refunded + excluded.refunded
), together as (
    insert into sales_of_all as a (live, day, currency, successful, volume, failed, refunds, refunded)
    select true, (begins_at at time zone 'UTC')::date, currency, sum(successful), sum(volume), sum(failed), sum(refunds),
           sum(refunded)
      from summed
     group by (begins_at at time zone 'UTC')::date, currency
     order by 2, 3
        on conflict (live, day, currency) do update
           set successful = a.successful + excluded.successful, volume = a.volume + excluded.volume,
               failed = a.failed + excluded.failed, refunds = a.refunds + excluded.refunds,
               refunded = a.refunded + excluded.refunded
)
update sales_closing set closed_until = :next_until;
