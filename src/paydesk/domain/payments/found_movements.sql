-- name: begin_found_refund(merchant_id, live, payment_id, attempt_id, amount, idempotency_key, number, acquirer, by_us, at, now)$
-- A refund that the acquirer has made and that is not in our books, as if its intent had just been committed; it is
-- recorded within the same transaction. It takes what is left of the payment, as any other. One of ours was asked for by a
-- caller who may never have been told: an equal request is its repeat. It has the number again by which its shop may know
-- it, unless another refund or chargeback has that by now.
with held as (
    update payment p
       set refunding = p.refunding + :amount::numeric
     where p.merchant_id = :merchant_id and p.live = :live and p.id = :payment_id and p.attempt_id = :attempt_id
       and p.state in ('captured', 'partially_refunded', 'charged_back')
       and p.refunded + p.refunding + greatest(p.charged_back, 0) + :amount::numeric <= p.amount
 returning p.*
)
insert into movement (merchant_id, live, id, payment_id, kind, state, amount, currency, idempotency_key, acquirer,
                      requested_by, created_at, lookup_at, unanswered_since, fees_returned)
select h.merchant_id, h.live,
       case when :number::bigint > 0
                 and not exists (select from merchant m join movement x on x.merchant_id = m.id and x.id = :number)
                 and not exists (select from merchant m join chargeback x on x.merchant_id = m.id and x.id = :number)
            then :number else nextval('movement_id_seq') end,
       h.id, 'refund', 'processing', :amount, h.currency, :idempotency_key, :acquirer, 'bank',
       :at, :now, case when :by_us::boolean then clock_timestamp() end,
       (select fees_returned from fee_plan where merchant_id = h.merchant_id)
  from held h
returning id;

-- name: pass_number(number)$
-- The number of a refund is given to nobody else.
select pass_id('movement_id_seq', :number);

-- name: begin_found_ending(merchant_id, live, payment_id, attempt_id, kind, pads, acquirer, at, now)$
-- An authorization that the acquirer has captured, or let go of, and that our books still have as held. Its key is the one
-- that it has if no caller named it.
with held as (
    update payment p
       set moving_id = nextval('movement_id_seq')
     where p.merchant_id = :merchant_id and p.live = :live and p.id = :payment_id and p.attempt_id = :attempt_id
       and p.state = 'authorized' and p.moving_id is null
 returning p.*
)
insert into movement (merchant_id, live, id, payment_id, kind, state, amount, currency, idempotency_key, acquirer,
                      requested_by, created_at, lookup_at)
select h.merchant_id, h.live, h.moving_id, h.id, :kind, 'processing', h.amount, h.currency,
       movement_key(:pads, a.idempotency_key, h.merchant_id, h.live, h.id, :kind, null), :acquirer, 'bank', :at, :now
  from held h
  join payment_attempt a on a.merchant_id = h.merchant_id and a.live = h.live and a.id = h.attempt_id
returning id;

-- name: name_found_refund(merchant_id, live, payment_id, pads, request_key)$
-- A caller comes again with the key under which a forgotten refund was made: that one is theirs.
update movement m
   set request_key = :request_key, unanswered_since = null
  from payment p
  join payment_attempt a on a.merchant_id = p.merchant_id and a.live = p.live and a.id = p.attempt_id
 where p.merchant_id = :merchant_id and p.live = :live and p.id = :payment_id
   and m.merchant_id = p.merchant_id and m.live = p.live and m.payment_id = p.id and m.kind = 'refund'
   and m.request_key is null
   and m.idempotency_key
       = movement_key(:pads, a.idempotency_key, p.merchant_id, p.live, p.id, 'refund', :request_key)
returning m.id;
