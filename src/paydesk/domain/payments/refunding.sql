-- name: forget_days(before)!
delete from refund_day where day < (:before::timestamptz at time zone 'UTC')::date;

-- name: show_refund(merchant_id, live, id)^
-- A refund, or the void of an authorization, with its order as it stands now.
select m.id, m.payment_id, m.kind, m.state, m.amount, m.currency, m.refusal, p.merchant_order_id, p.amount as paid,
       p.refunded
  from movement m
  join payment p on p.merchant_id = m.merchant_id and p.live = m.live and p.id = m.payment_id
 where m.merchant_id = :merchant_id and m.live = :live and m.id = :id;

-- name: refunds_of(merchant_id, live, payment_id)
-- What was given back of a payment, or is on its way, first to last.
select id as reference_id, amount, state, coalesce(failed_at, finished_at, created_at) as at
  from movement
 where merchant_id = :merchant_id and live = :live and payment_id = :payment_id and kind in ('refund', 'void')
 order by id;

-- name: side_of_payment(id)^
-- Whose payment it is: ids are unique in a deployment, and each merchant's index is asked for it.
select p.merchant_id, p.live
  from merchant m
 cross join lateral (select merchant_id, live from payment where merchant_id = m.id and id = :id) p;
