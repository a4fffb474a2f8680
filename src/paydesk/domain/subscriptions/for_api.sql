-- name: by_time(merchant_id, live, state, since, until, before_at, before_id, most)
-- One side's subscriptions, newest first, of the usual state or (null) of all. The page is cut before anything is joined
-- to it.
select w.*
  from (
      select merchant_id, live, id
        from subscription
       where merchant_id = :merchant_id and live = :live
         and created_at >= :since and created_at < :until and (created_at, id) < (:before_at, :before_id)
         and (:state::text is null or state = :state)
       order by created_at desc, id desc
       limit :most
  ) page
  join subscription_planned w on w.merchant_id = page.merchant_id and w.live = page.live and w.id = page.id
 order by w.created_at desc, w.id desc;

-- name: in_state(merchant_id, live, state, since, until, before_at, before_id, most)
-- Those of one state that is not the usual one.
select w.*
  from (
      select merchant_id, live, id
        from subscription
       where merchant_id = :merchant_id and live = :live and state = :state and state <> 'Active'
         and created_at >= :since and created_at < :until and (created_at, id) < (:before_at, :before_id)
       order by created_at desc, id desc
       limit :most
  ) page
  join subscription_planned w on w.merchant_id = page.merchant_id and w.live = page.live and w.id = page.id
 order by w.created_at desc, w.id desc;

-- name: of_reference(merchant_id, live, reference, email, state, since, until, before_at, before_id, most)
-- Those that the payment of an order began: at most one.
select *
  from subscription_planned
 where merchant_id = :merchant_id and live = :live
   and init_payment_id = any(array(select payments_of_reference(:merchant_id, :live, :reference)))
   and (:email::text is null or lower(email) = lower(:email))
   and (:state::text is null or state = :state)
   and created_at >= :since and created_at < :until and (created_at, id) < (:before_at, :before_id)
 order by created_at desc, id desc
 limit :most;

-- name: of_email(merchant_id, live, email, state, since, until, before_at, before_id, most)
select *
  from subscription_planned
 where merchant_id = :merchant_id and live = :live
   and init_payment_id = any(array(select payments_of_email(:merchant_id, :live, lower(:email::text))))
   and (:state::text is null or state = :state)
   and created_at >= :since and created_at < :until and (created_at, id) < (:before_at, :before_id)
 order by created_at desc, id desc
 limit :most;

-- name: which(merchant_id, live, ids)$
-- The first of these ids that names a subscription of the shop's.
select id
  from subscription
 where merchant_id = :merchant_id and live = :live and id = any(:ids::bigint[])
 order by array_position(:ids::bigint[], id)
 limit 1;
