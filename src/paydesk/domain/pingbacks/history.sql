-- name: by_time(merchant_id, live, since, until, before_at, before_id, most, acknowledged)
-- One side's pingbacks, newest first: all of them, or only those of the usual state.
select *
  from pingback
 where merchant_id = :merchant_id and live = :live
   and created_at >= :since and created_at < :until and (created_at, id) < (:before_at, :before_id)
   and (not :acknowledged::boolean or state = 'acknowledged')
 order by created_at desc, id desc
 limit :most;

-- name: in_state(merchant_id, live, state, since, until, before_at, before_id, most)
-- Those of one state that is not the usual one.
select *
  from pingback
 where merchant_id = :merchant_id and live = :live and state = :state and state <> 'acknowledged'
   and created_at >= :since and created_at < :until and (created_at, id) < (:before_at, :before_id)
 order by created_at desc, id desc
 limit :most;

-- name: about(merchant_id, live, reference, email, state, since, until, before_at, before_id, most)
-- Those about the payments of an order reference, of an e-mail address, or (both given) of both.
select *
  from pingback
 where merchant_id = :merchant_id and live = :live
   and id = any(array(
       select pingbacks_about(:merchant_id, :live, array(
           select * from payments_of_reference(:merchant_id, :live, :reference) where :email::text is null
            union all
           select * from payments_of_email(:merchant_id, :live, :email) where :reference::text is null
            union all
          (select * from payments_of_reference(:merchant_id, :live, :reference)
            intersect
           select * from payments_of_email(:merchant_id, :live, :email))))))
   and (:state::text is null or state = :state)
   and created_at >= :since and created_at < :until and (created_at, id) < (:before_at, :before_id)
 order by created_at desc, id desc
 limit :most;

-- name: find(merchant_id, live, id)^
select * from pingback where merchant_id = :merchant_id and live = :live and id = :id;
