-- name: fold_movements(most)$
-- Movements that are not counted in the sums of their days are, and marked so, in one statement: read at any moment,
-- sums and what is not folded have each movement once. Sums are written in one order, so that two workers can't block
-- each other.
with taken as materialized (
    select m.merchant_id, m.subscription_id, m.number
      from mrr_movement m
     where not m.folded and coalesce(m.merchant_id <> all (array(select merchant_id from merchant_fence)), true)
     order by m.merchant_id, m.live, m.day
     limit :most
       for update skip locked
), marked as (
    update mrr_movement m
       set folded = true
      from taken t
     where m.merchant_id = t.merchant_id and m.subscription_id = t.subscription_id and m.number = t.number
 returning m.*
), summed as (
    insert into mrr_day as d (merchant_id, live, currency, day, kind, began, amount, movements)
    select merchant_id, live, currency, day, kind, began, sum(amount), count(*)
      from marked
     group by merchant_id, live, currency, day, kind, began
     order by merchant_id, live, currency, day, kind, began
        on conflict (merchant_id, live, currency, day, kind, began)
        do update set amount = d.amount + excluded.amount, movements = d.movements + excluded.movements
)
select count(*) from marked;
