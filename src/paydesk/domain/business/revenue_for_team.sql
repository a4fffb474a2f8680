-- name: revenue_figures(merchant_id, live, since, until, by_month)
-- Movements of monthly recurring revenue by kind and day, or month; those before a range as one sum without a day. What is
-- folded into sums and what is not yet are read at one moment.
select f.currency,
       case when f.day >= :since::date
            then case when :by_month::boolean then date_trunc('month', f.day)::date else f.day end end as day,
       f.kind, sum(f.amount) as amount, sum(f.movements)::bigint as movements
  from (
      select d.currency, d.day, d.kind, d.amount, d.movements
        from mrr_day d
       where d.merchant_id = :merchant_id and d.live = :live
       union all
      select m.currency, m.day, m.kind, m.amount, 1
        from mrr_movement m
       where m.merchant_id = :merchant_id and m.live = :live and not m.folded
  ) f
 where f.day <= :until::date
 group by 1, 2, 3
 order by 1, 2, 3;

-- name: monthly(merchant_id, live, until)
-- The same movements up to a day as one sum by currency: what all subscriptions bring in a month at its end.
select f.currency, sum(f.amount) as amount
  from (
      select d.currency, sum(d.amount) as amount
        from mrr_day d
       where d.merchant_id = :merchant_id and d.live = :live and d.day <= :until::date
       group by d.currency
       union all
      select m.currency, sum(m.amount)
        from mrr_movement m
       where m.merchant_id = :merchant_id and m.live = :live and not m.folded and m.day <= :until::date
       group by m.currency
  ) f
 group by f.currency
 order by f.currency;

-- name: cohorts(merchant_id, live, since)
-- Subscriptions that came and went, by the month in which they began to count and that in which it was.
select f.currency, f.began, date_trunc('month', f.day)::date as month,
       coalesce(sum(f.movements) filter (where f.kind in ('new', 'converted')), 0)::bigint as began_then,
       sum(case when f.kind = 'churn' then -f.movements else f.movements end)::bigint as more, sum(f.amount) as amount
  from (
      select d.currency, d.began, d.day, d.kind, d.amount, d.movements
        from mrr_day d
       where d.merchant_id = :merchant_id and d.live = :live and d.began >= :since::date
       union all
      select m.currency, m.began, m.day, m.kind, m.amount, 1
        from mrr_movement m
       where m.merchant_id = :merchant_id and m.live = :live and not m.folded and m.began >= :since::date
  ) f
 where f.kind in ('new', 'converted', 'churn', 'reactivation')
 group by 1, 2, 3
 order by 1, 2, 3;

-- name: movements(merchant_id, live, since, until, after_day, after_id, after_number, most)
-- The movements of a range one by one, in the order of their days.
select m.subscription_id, m.number, m.kind, m.currency, m.amount, m.at, m.day
  from mrr_movement m
 where m.merchant_id = :merchant_id and m.live = :live and m.day >= :since::date and m.day <= :until::date
   and (m.day, m.subscription_id, m.number) > (:after_day::date, :after_id, :after_number)
 order by m.day, m.subscription_id, m.number
 limit :most;
