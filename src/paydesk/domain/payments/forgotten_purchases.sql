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

-- name: pass_id(payment_id)$
select pass_id('payment_id_seq', :payment_id);

-- name: take_up_id(merchant_id, live, attempt_id, payment_id)!
-- A forgotten purchase is taken up by a new attempt: shops may know it by the id that its payment had, so the payment gets
-- that again, unless another has it by now. Nothing but its attempts, what asked for these, and who pays by what, names a payment
-- that is not paid; its customer and its card are named by code of before as by this one, so a trigger sees to them.
with held as materialized (
    select p.merchant_id, p.live, p.id
      from payment_attempt a
      join payment p on p.merchant_id = a.merchant_id and p.live = a.live and p.id = a.payment_id
     where a.merchant_id = :merchant_id and a.live = :live and a.id = :attempt_id and p.attempt_id = a.id
       and a.state in ('processing', 'challenged', 'pending')
       and p.state in ('processing', 'challenged', 'pending')
       and p.id <> :payment_id::bigint and :payment_id > 0
       and not exists (select from merchant m join payment x on x.merchant_id = m.id and x.id = :payment_id)
       for update of p
), renamed as (
    update payment p
       set id = :payment_id
      from held
     where p.merchant_id = held.merchant_id and p.live = held.live and p.id = held.id
), charged as (
    update instrument_charge i
       set payment_id = :payment_id
      from held
     where i.merchant_id = held.merchant_id and i.live = held.live and i.payment_id = held.id
)
update payment_attempt a
   set payment_id = :payment_id
  from held
 where a.merchant_id = held.merchant_id and a.live = held.live and a.payment_id = held.id;

-- name: terms_of(merchant_id, live, attempt_id)^
-- What the customer of an attempt has agreed to pay again and again; no row if nothing will be charged again.
select t.*
  from payment_attempt a
  join payment p on p.merchant_id = a.merchant_id and p.live = a.live and p.id = a.payment_id
  left join checkout c on c.merchant_id = a.merchant_id and c.live = a.live and c.id = a.checkout_id
  left join subscription s
    on p.renewal and s.merchant_id = p.merchant_id and s.live = p.live and s.id = p.subscription_id
  join package_terms t
    on t.merchant_id = a.merchant_id and t.live = a.live
   and t.package_version_id = case when p.renewal then s.package_version_id else c.package_version_id end
 where a.merchant_id = :merchant_id and a.live = :live and a.id = :attempt_id;
