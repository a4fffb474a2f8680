-- name: list_chargebacks(merchant_id, live, is_open, since, until, before_at, before_id, most)
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

-- name: find_chargeback(merchant_id, live, id)^
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

-- name: earlier_payments(merchant_id, live, payment_id, most)
-- What the customer of a payment, known by the e-mail address, had paid before at a checkout and has not disputed, newest
-- first, each with the address from which it was paid. All who were erased have one address, and nobody knows them.
select e.id, e.merchant_order_id, e.amount, e.currency, e.paid_at, a.client_address
  from payment p
  join customer c on c.merchant_id = p.merchant_id and c.live = p.live and c.id = p.customer_id
  join customer o on o.merchant_id = c.merchant_id and o.live = c.live and lower(o.email) = lower(c.email)
 cross join lateral payments_of_customer(o.merchant_id, o.live, o.id) own
  join payment e on e.merchant_id = o.merchant_id and e.live = o.live and e.id = own.payment_id
  join payment_attempt a on a.merchant_id = e.merchant_id and a.live = e.live and a.id = e.attempt_id
 where p.merchant_id = :merchant_id and p.live = :live and p.id = :payment_id and c.erased_at is null
   and o.erased_at is null and e.id <> p.id and e.paid_at < p.paid_at and e.state in ('captured', 'partially_refunded')
   and not exists (select from chargeback b
                    where b.merchant_id = e.merchant_id and b.live = e.live and b.payment_id = e.id)
 order by e.paid_at desc, e.id desc
 limit :most;
