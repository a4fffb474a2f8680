-- oldest code: 150
-- in batches of 2000: payment (merchant_id, id)
-- The reserves of payments that settled before. What moved meanwhile the trigger has written down: only the difference
-- is written, so that a batch may be run again.
insert into reserve_change (merchant_id, live, payment_id, currency, due_at, amount)
select p.merchant_id, p.live, p.id, p.currency, c.due_at, sum(c.amount)
  from batch b
  join payment p on p.merchant_id = b.merchant_id and p.id = b.id
 cross join lateral (
     select quarter_of(p.funds_due_at) as due_at, p.reserve - p.reserve_taken as amount
      where p.settled_at is not null and p.funds_due_at is not null
      union all
     select due_at, -amount
       from reserve_change
      where merchant_id = p.merchant_id and live = p.live and payment_id = p.id
 ) c
 group by p.merchant_id, p.live, p.id, p.currency, c.due_at
having sum(c.amount) <> 0;
