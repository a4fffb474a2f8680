-- name: newest_of_all(merchant_id, live, state, most)
-- The newest pingbacks of all merchants' sides, or of those asked for (null: any): each side's come from its index, so
-- that a long history costs nothing. Across sides ids tell what is newer: a test clock's times can't be compared.
select p.id, p.live, p.event, p.payment_id, p.url, p.sign_version, p.format, p.payload, p.state, p.attempts,
       p.due_at, p.created_at, p.finished_at, p.merchant_id
  from merchant m
 cross join (values (true), (false)) as side (live)
 cross join lateral (
     select *
       from pingback
      where merchant_id = m.id and live = side.live and (:state::text is null or state = :state)
      order by created_at desc, id desc
      limit :most
 ) p
 where (:merchant_id::bigint is null or m.id = :merchant_id) and (:live::boolean is null or side.live = :live)
 order by p.id desc
 limit :most;

-- name: side_of(id)^
-- Whose pingback it is: ids are unique in a deployment, and each merchant's index is asked for it.
select p.merchant_id, p.live
  from merchant m
 cross join lateral (select merchant_id, live from pingback where merchant_id = m.id and id = :id) p;

-- name: exhausted_of(merchant_id)
select live, id
  from pingback
 where merchant_id = :merchant_id and state = 'exhausted'
 order by id;
