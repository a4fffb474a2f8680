-- name: list_disputes(merchant_id, live, is_open, since, until, before_at, before_id, most)
-- A page of one side's chargebacks, newest first, or those alone that wait for an answer or a decision.
select c.id, c.payment_id, c.state, c.amount, c.currency, c.taken, c.returned, c.reason, c.evidence, c.evidence_at,
       c.evidence_state, c.respond_by, c.opened_at, c.closed_at, c.acquirer, p.merchant_order_id
  from (
      select *
        from chargeback
       where merchant_id = :merchant_id and live = :live and (not :is_open::boolean or state in ('inquiry', 'open'))
         and opened_at >= :since and opened_at < :until and (opened_at, id) < (:before_at, :before_id)
       order by opened_at desc, id desc
       limit :most
  ) c
  join payment p on p.merchant_id = c.merchant_id and p.live = c.live and p.id = c.payment_id
 order by c.opened_at desc, c.id desc;

-- name: find_dispute(merchant_id, live, id)^
select c.id, c.payment_id, c.state, c.amount, c.currency, c.taken, c.returned, c.reason, c.evidence, c.evidence_at,
       c.evidence_state, c.respond_by, c.opened_at, c.closed_at, c.acquirer, p.merchant_order_id
  from chargeback c
  join payment p on p.merchant_id = c.merchant_id and p.live = c.live and p.id = c.payment_id
 where c.merchant_id = :merchant_id and c.live = :live and c.id = :id;

-- name: agreed_to(merchant_id, live, payment_id)^
-- The terms that the customer of a subscription's payment agreed to, and when it began.
select s.terms_agreed, s.created_at
  from payment p
  join subscription s on s.merchant_id = p.merchant_id and s.live = p.live and s.id = p.subscription_id
 where p.merchant_id = :merchant_id and p.live = :live and p.id = :payment_id and s.terms_agreed <> '';

-- name: receipt_sent(merchant_id, once)$
-- When the customer was mailed the receipt of a payment.
select sent_at from mail where merchant_id = :merchant_id and once = :once and state = 'sent';
