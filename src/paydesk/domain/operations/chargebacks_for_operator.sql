-- name: chargebacks_of_all(live, before_at, before_id, since, until, most)
-- The chargebacks of all merchants, newest first.
select c.id, c.payment_id, c.state, c.acquirer, c.amount, c.currency, c.taken, c.returned,
       coalesce(c.disputed_amount, c.amount) as disputed_amount,
       coalesce(c.disputed_currency, c.currency) as disputed_currency, c.fee, c.reason, c.opened_at, c.closed_at,
       c.evidence_at, c.evidence, c.evidence_state, c.respond_by, c.merchant_id, m.name as merchant_name, c.live
  from chargeback c
  join merchant m on m.id = c.merchant_id
 where c.live = :live and c.opened_at >= :since and c.opened_at < :until
   and (c.opened_at, c.id) < (:before_at, :before_id)
 order by c.opened_at desc, c.id desc
 limit :most;

-- name: chargebacks_in_state(live, state, before_at, before_id, since, until, most)
select c.id, c.payment_id, c.state, c.acquirer, c.amount, c.currency, c.taken, c.returned,
       coalesce(c.disputed_amount, c.amount) as disputed_amount,
       coalesce(c.disputed_currency, c.currency) as disputed_currency, c.fee, c.reason, c.opened_at, c.closed_at,
       c.evidence_at, c.evidence, c.evidence_state, c.respond_by, c.merchant_id, m.name as merchant_name, c.live
  from chargeback c
  join merchant m on m.id = c.merchant_id
 where c.live = :live and c.state = :state and c.opened_at >= :since and c.opened_at < :until
   and (c.opened_at, c.id) < (:before_at, :before_id)
 order by c.opened_at desc, c.id desc
 limit :most;

-- name: chargeback_of(merchant_id, id)^
select c.id, c.payment_id, c.state, c.acquirer, c.amount, c.currency, c.taken, c.returned,
       coalesce(c.disputed_amount, c.amount) as disputed_amount,
       coalesce(c.disputed_currency, c.currency) as disputed_currency, c.fee, c.reason, c.opened_at, c.closed_at,
       c.evidence_at, c.evidence, c.evidence_state, c.respond_by, c.merchant_id, m.name as merchant_name, c.live
  from chargeback c
  join merchant m on m.id = c.merchant_id
 where c.merchant_id = :merchant_id and c.id = :id;

-- name: chargebacks_without_evidence(live, most)$
-- How many open chargebacks nobody has given evidence for, counted up to a number.
select count(*)
  from (select from chargeback where live = :live and state = 'open' and evidence_at is null limit :most) one;
