-- name: who_is_there(merchant_ids)
-- Who of these merchants is here, neither on the way here nor another cell's already.
select m.id, f.merchant_id is not null as is_closed
  from merchant m
  left join merchant_fence f on f.merchant_id = m.id
 where m.id = any(:merchant_ids::bigint[]) and not coalesce(f.arrives, false) and f.moved_at is null;
