-- name: payment(merchant_id, id)^
-- A payment of either side with its customer, what was bought and how its money is divided.
select w.merchant_id, m.name as merchant_name, w.live, w.id, w.merchant_order_id, w.state, w.amount, w.currency,
       w.created_at, w.brand, w.last4, w.email, trim(w.first_name || ' ' || w.last_name) as customer, w.country,
       w.subscription_id, w.net, w.reserve, w.fees, w.refunded, p.charged_back, p.checkout_id, p.paid_at, p.settled_at,
       coalesce(c.description, '') as description
  from payment p
  join payment_whole w on w.merchant_id = p.merchant_id and w.live = p.live and w.id = p.id
  join merchant m on m.id = p.merchant_id
  left join checkout c on c.merchant_id = p.merchant_id and c.live = p.live and c.id = p.checkout_id
 where p.merchant_id = :merchant_id and p.id = :id;

-- name: tries(merchant_id, live, payment_id, most)
-- The attempts to make a payment, first to last, as the acquirer knows them.
select id, state, acquirer, acquirer_reference, amount, currency, decline_reason, created_at, finished_at
  from payment_attempt
 where merchant_id = :merchant_id and live = :live and payment_id = :payment_id
 order by id
 limit :most;

-- name: moves(merchant_id, live, payment_id, most)
-- Its captures, voids and refunds, first to last, as the acquirer knows them.
select id, kind, state, acquirer, acquirer_reference, amount, currency, refusal, created_at, finished_at
  from movement
 where merchant_id = :merchant_id and live = :live and payment_id = :payment_id
 order by id
 limit :most;

-- name: told_of_payment(merchant_id, live, payment_id, most)
-- What its merchant was told of it.
select id, event, state, attempts, created_at
  from pingback
 where merchant_id = :merchant_id and live = :live and payment_id = :payment_id
   and (event = 'payment' or reversal_id is not null)
 order by id
 limit :most;

-- name: disputed(merchant_id, live, payment_id, most)
select id, state, amount, currency, opened_at
  from chargeback
 where merchant_id = :merchant_id and live = :live and payment_id = :payment_id
 order by id
 limit :most;

-- name: subscription(merchant_id, id)^
-- A subscription of either side with its customer, its card and its price.
select s.merchant_id, m.name as merchant_name, s.live, s.id, s.init_merchant_order_id as merchant_order_id, s.state,
       v.name as package, v.price as amount, v.currency, s.created_at, s.date_next, s.date_end, s.failures, u.email,
       trim(u.first_name || ' ' || u.last_name) as customer, d.brand, d.last4, s.acquirer
  from subscription s
  join package_version v on v.merchant_id = s.merchant_id and v.live = s.live and v.id = s.package_version_id
  join customer u on u.merchant_id = s.merchant_id and u.live = s.live and u.id = s.customer_id
  join card d on d.merchant_id = s.merchant_id and d.live = s.live and d.id = s.card_id
  join merchant m on m.id = s.merchant_id
 where s.merchant_id = :merchant_id and s.id = :id;

-- name: charged(merchant_id, live, subscription_id, most)
-- What was charged for a subscription, newest first.
select id, merchant_order_id, state, amount, currency, created_at
  from payment
 where merchant_id = :merchant_id and live = :live and subscription_id = :subscription_id
   and subscription_id is not null
 order by period_number desc nulls last
 limit :most;

-- name: checkout(merchant_id, id)^
-- A checkout of either side, with the payment of its order.
select c.merchant_id, m.name as merchant_name, c.live, c.id, c.merchant_order_id, c.amount, c.currency, c.created_at,
       c.expires_at, p.id as payment_id, p.state as payment_state, c.description
  from checkout c
  join merchant m on m.id = c.merchant_id
  left join payment p
    on p.merchant_id = c.merchant_id and p.live = c.live and p.merchant_order_id = c.merchant_order_id and not p.renewal
 where c.merchant_id = :merchant_id and c.id = :id;
