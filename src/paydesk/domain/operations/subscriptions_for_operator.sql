-- name: newest_of_all(merchant_id, live, state, most)
-- The newest subscriptions of all merchants' sides, or of those asked for (null: any): each side's come from its index,
-- so that a long history costs nothing. Across sides ids tell what is newer: a test clock's times can't be compared.
select w.*
  from merchant m
 cross join (values (true), (false)) as side (live)
 cross join lateral (
     select *
       from subscription_planned
      where merchant_id = m.id and live = side.live and (:state::text is null or state = :state)
      order by created_at desc, id desc
      limit :most
 ) w
 where (:merchant_id::bigint is null or m.id = :merchant_id) and (:live::boolean is null or side.live = :live)
 order by w.id desc
 limit :most;

-- name: side_of(id)^
-- Whose subscription it is: ids are unique in a deployment, and each merchant's index is asked for it.
select s.merchant_id, s.live
  from merchant m
 cross join lateral (select merchant_id, live from subscription where merchant_id = m.id and id = :id) s;
