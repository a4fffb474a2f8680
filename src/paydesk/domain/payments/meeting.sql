-- name: take_next_number(merchant_id, live, attempt_id, idempotency_key, pads)^
-- The key of an attempt stands for an older purchase that took nothing: the attempt goes on under its next number, unless
-- somebody else has moved it.
update payment_attempt a
   set number = n.number,
       idempotency_key = derived_key(
           :pads::bytea,
           case when p.renewal then 'renewal ' || f.idempotency_key || ' ' || p.period_number || ' ' || n.number
                else 'order ' || m.key_tag || ' ' || case when p.live then 'live' else 'test ' || m.test_generation end
                     || ' ' || n.number || ' ' || p.merchant_order_id
           end)
  from payment p
  join merchant m on m.id = p.merchant_id
  left join subscription s
    on p.renewal and s.merchant_id = p.merchant_id and s.live = p.live and s.id = p.subscription_id
  left join payment i on i.merchant_id = s.merchant_id and i.live = s.live and i.id = s.init_payment_id
  left join payment_attempt f on f.merchant_id = i.merchant_id and f.live = i.live and f.id = i.attempt_id
 cross join lateral (select next_attempt(p.merchant_id, p.live, p.id) as number) n
 where a.merchant_id = :merchant_id and a.live = :live and a.id = :attempt_id and a.state = 'processing'
   and a.idempotency_key = :idempotency_key
   and p.merchant_id = a.merchant_id and p.live = a.live and p.id = a.payment_id and p.attempt_id = a.id
returning a.idempotency_key, a.number;
