-- name: note_long_charges(merchant_ids, lives, attempt_ids)!
-- Charges in flight take long, whose subscriptions are left out of what is due without a look at their rows. Who has one
-- locked just now is ending its charge.
with long as materialized (
    select s.merchant_id, s.id, s.charging_attempt_id
      from unnest(:merchant_ids::bigint[], :lives::boolean[], :attempt_ids::bigint[]) as o (merchant_id, live, attempt_id)
      join payment_attempt a on a.merchant_id = o.merchant_id and a.live = o.live and a.id = o.attempt_id
      join payment p on p.merchant_id = a.merchant_id and p.live = a.live and p.id = a.payment_id
      join subscription s
        on s.merchant_id = p.merchant_id and s.live = p.live and s.id = p.subscription_id
       and s.charging_attempt_id = a.id and s.charge_takes_long is null
     order by s.merchant_id, s.id
       for update of s skip locked
)
update subscription s
   set charge_takes_long = true
  from long
 where s.merchant_id = long.merchant_id and s.id = long.id and s.charging_attempt_id = long.charging_attempt_id;
