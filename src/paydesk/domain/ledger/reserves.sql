-- name: fold_reserves(most)$
-- Changes of the reserve are added to the sums and are gone, in one statement: read at any moment, sums and changes have
-- each once. Sums are written in one order, so that two workers can't block each other. Not before all payments of
-- before are written down: that step looks at the changes that there are.
with taken as materialized (
    select merchant_id, live, payment_id, id
      from reserve_change
     where exists (select from schema_migration where number = 408)
       and coalesce(merchant_id <> all (array(select merchant_id from merchant_fence)), true)
     order by merchant_id, live, payment_id, id
     limit :most
       for update skip locked
), gone as (
    delete from reserve_change c
     using taken t
     where c.merchant_id = t.merchant_id and c.live = t.live and c.payment_id = t.payment_id and c.id = t.id
 returning c.*
), summed as (
    insert into reserve_due as d (merchant_id, live, currency, due_at, amount)
    select merchant_id, live, currency, due_at, sum(amount)
      from gone
     group by merchant_id, live, currency, due_at
     order by merchant_id, live, currency, due_at
        on conflict (merchant_id, live, currency, due_at) do update set amount = d.amount + excluded.amount
)
select count(*) from gone;

-- name: forget_released(before)!
-- Sums of what is released altogether; one that still gets a change is made anew.
delete from reserve_due where amount = 0 and due_at < :before;
