-- name: await_card(merchant_id, live, init_payment_id, now)$
-- Within the transaction that begins a trial without a card: it ends with the trial, which is its open change, until its
-- customer gives a card. Only what has no account of an acquirer waits for one.
with named as materialized (
    select s.merchant_id, s.live, s.id, s.anchor, s.date_start, nextval('subscription_change_id_seq') as change_id
      from subscription s
     where s.merchant_id = :merchant_id and s.live = :live and s.init_payment_id = :init_payment_id
       and s.state = 'Trial' and s.acquirer = '' and s.change_id is null
), opened as (
    insert into subscription_change (merchant_id, live, id, subscription_id, type, due_at, asked_by, since, created_at)
    select merchant_id, live, change_id, id, 'cancel', anchor, 'no_card', date_start, :now from named
)
update subscription s
   set change_id = named.change_id
  from named
 where s.merchant_id = named.merchant_id and s.live = named.live and s.id = named.id
returning s.id;
