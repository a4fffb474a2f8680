-- name: due_now(merchant_id, live, now, after_id, most)
-- The subscriptions of a side that are due by its time, in the order of their ids.
select w.*
  from subscription_planned w
 where w.merchant_id = :merchant_id and w.live = :live and w.id > :after_id and w.date_next <= :now
   and w.charging_attempt_id is null
 order by w.id
 limit :most;

-- name: charge_all(merchant_id, now)$
update merchant
   set charge_missed_until = :now
 where id = :merchant_id
returning id;
