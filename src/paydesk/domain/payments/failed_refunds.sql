-- name: claim_reading(acquirer, lease)^
-- One worker at a time reads an acquirer's failed refunds, from where the last one stopped; its lease is in database time.
-- Whoever comes while somebody reads does not wait for what that one writes.
insert into failed_refund_reading as r (acquirer, leased_until)
select :acquirer::text, clock_timestamp() + :lease::interval
 where :acquirer::text <> all (accounts_left_alone(true))
   and not exists (select from failed_refund_reading where acquirer = :acquirer and leased_until >= clock_timestamp())
    on conflict (acquirer) do update
       set leased_until = excluded.leased_until
     where r.leased_until is null or r.leased_until < clock_timestamp()
returning place, leased_until;

-- name: hold(acquirer, held, lease)$
-- Whoever has the lease that it was given (until `held`) has it for longer, and nobody else gets it, or takes the account
-- elsewhere, before the transaction that this is in has ended. No row: it is another's, or the account is not here any more.
update failed_refund_reading
   set leased_until = clock_timestamp() + :lease::interval
 where acquirer = :acquirer and leased_until = :held
returning leased_until;

-- name: end_reading(acquirer, held, place, read_at)!
-- The next reading goes on from there; a null read_at leaves the time of the last one that went well.
update failed_refund_reading
   set place = :place, read_at = coalesce(:read_at, read_at), leased_until = null
 where acquirer = :acquirer and leased_until = :held;

-- name: reading_stands(acquirer)^
-- When an acquirer was last read to its end, or first tried.
select coalesce(read_at, began_at) as since from failed_refund_reading where acquirer = :acquirer;

-- name: reading_ages(acquirers, now)
-- How many seconds ago the failed refunds of each acquirer were last read to their end, or first tried.
select acquirer, extract(epoch from :now::timestamptz - coalesce(read_at, began_at))::double precision as age
  from failed_refund_reading
 where acquirer = any(:acquirers::text[]) and acquirer <> all (accounts_left_alone(true));

-- name: failed_refund(acquirer, key, real_now)^
-- The refund that was made under a key, with its payment as it stands and what its pingback needs.
select r.*, m.id as movement_id, m.state as movement_state, m.amount as moved,
       coalesce(m.fees_returned, r.fees_taken > 0) as fees_returned,
       (select coalesce(sum(x.amount), 0)
          from movement x
         where x.merchant_id = r.merchant_id and x.live = r.live and x.payment_id = r.payment_id and x.kind = 'refund'
           and x.state = 'done' and coalesce(x.fees_returned, r.fees_taken > 0)) as fees_returned_of,
       (select d.brand
          from payment p
          join card d on d.merchant_id = p.merchant_id and d.live = p.live and d.id = p.card_id
         where p.merchant_id = r.merchant_id and p.live = r.live and p.id = r.payment_id) as brand,
       :real_now::timestamptz + side_clock(m.live, s.test_clock) as shop_now
  from merchant s
  join movement m
    on m.merchant_id = s.id and m.idempotency_key = :key and m.acquirer = :acquirer and m.kind = 'refund'
  join reversible_payment r
    on r.merchant_id = m.merchant_id and r.live = m.live and r.payment_id = m.payment_id;

-- name: is_being_undone(acquirer, of_key)$
-- Whether the purchase under a key is being undone: after a refund that came to nothing another is made, or an operator
-- hears that none will be.
select exists (select
                 from merchant m
                 join payment_attempt a on a.merchant_id = m.id and a.idempotency_key = :of_key
                where a.acquirer = :acquirer and a.state = 'voiding')
    or exists (select
                 from purchase_given_back
                where acquirer = :acquirer and idempotency_key = :of_key and state = 'processing');

-- name: record_failed_refund(merchant_id, live, payment_id, movement_id, revision, state, fees, reason, event, send_to, pingback_format, payload, now)^
-- A refund that was made has failed: payment and refund go back, its money is the merchant's again, available at once,
-- but for the fees that it had returned, and the merchant is told; or nothing, if the payment is not any more as this was worked out from.
with held as materialized (
    select merchant_id, live, id
      from payment
     where merchant_id = :merchant_id and live = :live and id = :payment_id and revision = :revision
       for update
), open as materialized (
    select m.*
      from held h
      join movement m on m.merchant_id = h.merchant_id and m.live = h.live and m.payment_id = h.id
     where m.id = :movement_id and m.state = 'done'
       for update of m
), moved as (
    update payment p
       set state = :state, rare_state = rare_state(:state), revision = p.revision + 1, refunded = p.refunded - open.amount,
           fees_taken = p.fees_taken - :fees::numeric
      from open
     where p.merchant_id = open.merchant_id and p.live = open.live and p.id = open.payment_id
       and p.revision = :revision
 returning p.*, open.amount as returned
), failed as (
    update movement m
       set state = 'failed', refusal = :reason, failed_at = :now, failure_muted = :event::text is null
      from moved
     where m.merchant_id = moved.merchant_id and m.live = moved.live and m.id = :movement_id
), posting as materialized (
    select moved.*, nextval('ledger_posting_id_seq') as posting_id from moved
), posted as (
    insert into ledger_posting (merchant_id, live, posting_id, kind, payment_id, currency, acquirer, fees, available, at)
    select merchant_id, live, posting_id, 'refund_failure', id, currency, returned, -:fees::numeric, :fees - returned,
           posted_at(merchant_id, live, :now)
      from posting
), told as (
    insert into pingback (merchant_id, live, event, payment_id, reversal_id, url, sign_version, key_id, format, payload,
                          state, due_at, created_at)
    select merchant_id, live, :event, id, :movement_id, :send_to, sign_version, key_id, :pingback_format, :payload,
           case when :send_to::text is null then 'waiting' else 'due' end, :now, :now
      from moved
     where :event::text is not null
)
select id from moved;
