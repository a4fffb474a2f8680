-- name: by_time(merchant_id, live, states, since, until, before_at, before_id, most)
-- One side's payments, newest first, of some states or (null) of all. The page is cut before anything is joined to it.
select w.*
  from (
      select merchant_id, live, id
        from payment
       where merchant_id = :merchant_id and live = :live
         and created_at >= :since and created_at < :until and (created_at, id) < (:before_at, :before_id)
         and (:states::text[] is null or state = any(:states::text[]))
       order by created_at desc, id desc
       limit :most
  ) page
  join payment_whole w on w.merchant_id = page.merchant_id and w.live = page.live and w.id = page.id
 order by w.created_at desc, w.id desc;

-- name: in_states(merchant_id, live, states, since, until, before_at, before_id, most)
-- Those of states that are not the usual one: the newest of each come from the index by state. A payment is processing for
-- a moment only and is not in that: it is found by its attempt, which somebody will look after.
select w.*
  from (
      select one.*
        from unnest(:states::text[]) as asked (state)
       cross join lateral (
           select merchant_id, live, id, created_at
             from payment
            where merchant_id = :merchant_id and live = :live and rare_state = asked.state
              and created_at >= :since and created_at < :until and (created_at, id) < (:before_at, :before_id)
            order by created_at desc, id desc
            limit :most
       ) one
       union all
      select p.merchant_id, p.live, p.id, p.created_at
        from payment_attempt a
        join payment p on p.merchant_id = a.merchant_id and p.live = a.live and p.id = a.payment_id and p.attempt_id = a.id
       where 'processing' = any(:states::text[])
         and a.merchant_id = :merchant_id and a.live = :live and a.lookup_at is not null and p.state = 'processing'
         and p.created_at >= :since and p.created_at < :until and (p.created_at, p.id) < (:before_at, :before_id)
       order by created_at desc, id desc
       limit :most
  ) page
  join payment_whole w on w.merchant_id = page.merchant_id and w.live = page.live and w.id = page.id
 order by w.created_at desc, w.id desc;

-- name: of_reference(merchant_id, live, reference, email, subscription_id, states, since, until, before_at, before_id, most)
select *
  from payment_whole
 where merchant_id = :merchant_id and live = :live
   and id = any(array(select payments_of_reference(:merchant_id, :live, :reference)))
   and (:email::text is null or lower(email) = lower(:email))
   and (:subscription_id::bigint is null or subscription_id = :subscription_id)
   and (:states::text[] is null or state = any(:states::text[]))
   and created_at >= :since and created_at < :until and (created_at, id) < (:before_at, :before_id)
 order by created_at desc, id desc
 limit :most;

-- name: of_subscription(merchant_id, live, subscription_id, email, states, since, until, before_at, before_id, most)
select *
  from payment_whole
 where merchant_id = :merchant_id and live = :live
   and subscription_id = :subscription_id and subscription_id is not null
   and (:email::text is null or lower(email) = lower(:email))
   and (:states::text[] is null or state = any(:states::text[]))
   and created_at >= :since and created_at < :until and (created_at, id) < (:before_at, :before_id)
 order by created_at desc, id desc
 limit :most;

-- name: of_email(merchant_id, live, email, states, since, until, before_at, before_id, most)
select *
  from payment_whole
 where merchant_id = :merchant_id and live = :live
   and id = any(array(select payments_of_email(:merchant_id, :live, lower(:email::text))))
   and (:states::text[] is null or state = any(:states::text[]))
   and created_at >= :since and created_at < :until and (created_at, id) < (:before_at, :before_id)
 order by created_at desc, id desc
 limit :most;

-- name: find(merchant_id, live, id)^
select * from payment_whole where merchant_id = :merchant_id and live = :live and id = :id;

-- name: which(merchant_id, live, ids)$
-- The first of these ids that names a payment of the shop's.
select id
  from payment
 where merchant_id = :merchant_id and live = :live and id = any(:ids::bigint[])
 order by array_position(:ids::bigint[], id)
 limit 1;

-- name: attempts_of(merchant_id, live, payment_id)
-- All attempts to make a payment, first to last.
select a.id, a.state, a.amount, a.currency, a.decline_reason, a.created_at, a.finished_at, c.brand, c.last4
  from payment_attempt a
  join card c on c.merchant_id = a.merchant_id and c.live = a.live and c.id = a.card_id
 where a.merchant_id = :merchant_id and a.live = :live and a.payment_id = :payment_id
 order by a.id;
