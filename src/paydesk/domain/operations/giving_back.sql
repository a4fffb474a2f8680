-- name: keep_from_adopting()!
-- Nobody adopts anything until this transaction is over, and what was adopted is seen by the next statement.
select from deployment for update;

-- name: begin(acquirer, idempotency_key, reference, merchant_order_id, amount, currency, requested_by, now)^
-- The intent to give a purchase back that our books don't have at this account: of an order that was forgotten at one
-- account and paid again at another, both have the same key. What our books have as come to nothing, and was taken all the
-- same, has no payment to refund. One that was refused may be asked for again, and one whose answer was lost goes on.
insert into purchase_given_back as g (acquirer, idempotency_key, reference, merchant_order_id, amount, currency,
                                      requested_by, state, created_at)
select :acquirer, :idempotency_key, :reference, :merchant_order_id, :amount, :currency, :requested_by, 'processing', :now
 where not exists (select
                     from merchant m
                     join payment_attempt a
                       on a.merchant_id = m.id and a.idempotency_key = :idempotency_key and a.acquirer = :acquirer
                      and a.state not in ('declined', 'failed'))
    on conflict (acquirer, idempotency_key) do update
       set state = 'processing', refusal = '', finished_at = null
     where g.state <> 'done'
returning idempotency_key;

-- name: merchant_of_tag(tag)$
-- Whose a purchase is, by the tag in its mark; null if that merchant is gone.
select id from merchant where key_tag = :tag;

-- name: finish(acquirer, idempotency_key, state, refusal, now)!
update purchase_given_back
   set state = :state, refusal = :refusal, finished_at = :now
 where acquirer = :acquirer and idempotency_key = :idempotency_key and state = 'processing';

-- name: unfinished(acquirer, most)
select idempotency_key
  from purchase_given_back
 where acquirer = :acquirer and state = 'processing'
 order by created_at
 limit :most;

-- name: claim_voiding(acquirer, idempotency_key, lease)^
-- The attempt under a key that was given up, and whose approval is being undone: no worker asks for it meanwhile.
update payment_attempt a
   set leased_until = clock_timestamp() + :lease::interval
  from merchant m
 where a.merchant_id = m.id and a.idempotency_key = :idempotency_key and a.acquirer = :acquirer and a.state = 'voiding'
   and (a.leased_until is null or a.leased_until < clock_timestamp())
returning a.merchant_id, a.live, a.id as attempt_id, a.idempotency_key, a.acquirer;

-- name: settle_voiding(merchant_id, live, attempt_id, because, requested_by, now)^
-- Its customer has the money in another way: it is asked for no more, and what its acquirer still has of it is no
-- difference. Only the call that ends it gets a row back.
with over as (
    update payment_attempt
       set state = 'voided', finished_at = :now, lookup_at = null, leased_until = null
     where merchant_id = :merchant_id and live = :live and id = :attempt_id and state = 'voiding'
 returning *
), noted as (
    insert into purchase_given_back (acquirer, idempotency_key, reference, merchant_order_id, amount, currency,
                                     requested_by, state, because, created_at, finished_at)
    select o.acquirer, o.idempotency_key, o.acquirer_reference, p.merchant_order_id, o.amount, o.currency,
           :requested_by, 'done', :because, :now, :now
      from over o
      join payment p on p.merchant_id = o.merchant_id and p.live = o.live and p.id = o.payment_id
        on conflict (acquirer, idempotency_key) do update
       set state = 'done', refusal = '', because = excluded.because, finished_at = excluded.finished_at
)
select o.acquirer, o.idempotency_key as key, o.acquirer_reference as reference, p.merchant_order_id, o.amount,
       o.currency
  from over o
  join payment p on p.merchant_id = o.merchant_id and p.live = o.live and p.id = o.payment_id;
