-- name: refundable(merchant_id, live, payment_id)^
-- How a payment stands towards a refund, and the capture or void of it that is under way.
select p.merchant_order_id, p.state, p.amount, p.currency, p.refunded, p.refunding, p.charged_back, m.kind as moving
  from payment p
  left join movement m on m.merchant_id = p.merchant_id and m.id = p.moving_id
 where p.merchant_id = :merchant_id and p.live = :live and p.id = :payment_id;

-- name: given_back_in_day(merchant_id, live, requested_by, now)$
select units
  from refund_day
 where merchant_id = :merchant_id and live = :live and requested_by = :requested_by
   and day = (:now::timestamptz at time zone 'UTC')::date;
