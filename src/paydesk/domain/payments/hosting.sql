-- name: begin_page(merchant_id, live, attempt_id, asked, expires_at, slow)!
-- Within the transaction that commits the intent: an attempt has its page, or there is no attempt.
insert into hosted_page (merchant_id, live, attempt_id, asked, expires_at, slow)
values (:merchant_id, :live, :attempt_id, :asked, :expires_at, :slow);

-- name: stored_page(merchant_id, live, attempt_id)^
-- All that was asked for a page, with the rows that hold the rest of it; none of it changes while the page may be asked
-- for again, but for the key, where that stood for an older purchase.
select h.asked, a.idempotency_key, a.acquirer, a.number, u.email, a.checkout_id, encode(c.request_digest, 'hex') as seed
  from hosted_page h
  join payment_attempt a on a.merchant_id = h.merchant_id and a.live = h.live and a.id = h.attempt_id
  join payment p on p.merchant_id = a.merchant_id and p.live = a.live and p.id = a.payment_id and p.attempt_id = a.id
  join customer u on u.merchant_id = p.merchant_id and u.live = p.live and u.id = p.customer_id
  join checkout c on c.merchant_id = a.merchant_id and c.live = a.live and c.id = a.checkout_id
 where h.merchant_id = :merchant_id and h.live = :live and h.attempt_id = :attempt_id;

-- name: older_pages(merchant_id, live, payment_id, now)
-- Attempts of a payment that were given up and whose pages are not over, as far as their acquirer has said.
select a.id as attempt_id, a.idempotency_key, a.acquirer, a.acquirer_reference, a.amount, a.currency, h.expires_at,
       h.slow
  from payment_attempt a
  join hosted_page h on h.merchant_id = a.merchant_id and h.live = a.live and h.attempt_id = a.id
 where a.merchant_id = :merchant_id and a.live = :live and a.payment_id = :payment_id and a.state = 'abandoned'
   and a.acquirer_reference <> ''
   and (h.expires_at > :now or a.lookup_at is not null and h.expires_at > :now - interval '7 days')
 order by a.id;

-- name: record_pending(merchant_ids, lives, attempt_ids, acquirer_references, untils, lookup_ats)
-- The customers have paid by a slow method, or are charged by one; the payments wait for their bank, and nothing else pays
-- the orders meanwhile. A subscription stays marked by the attempt, so nothing charges it until that is decided.
with told as (
    select *
      from unnest(:merchant_ids::bigint[], :lives::boolean[], :attempt_ids::bigint[], :acquirer_references::text[],
                  :untils::timestamptz[], :lookup_ats::timestamptz[])
        as o (merchant_id, live, attempt_id, acquirer_reference, until, lookup_at)
), paid as (
    update payment p
       set state = 'pending', rare_state = 'pending', funds_look_at = null
      from told o
      join payment_attempt a on a.merchant_id = o.merchant_id and a.live = o.live and a.id = o.attempt_id
      join merchant m on m.id = o.merchant_id
     where p.merchant_id = a.merchant_id and p.live = a.live and p.id = a.payment_id and p.attempt_id = a.id
       and coalesce(p.state in ('processing', 'challenged'), false)
       and coalesce(a.state in ('processing', 'challenged'), false)
 returning o.merchant_id, o.live, o.attempt_id, o.acquirer_reference, o.lookup_at,
           o.until + side_clock(o.live, m.test_clock) as sure_by
), expected as (
    update hosted_page h
       set sure_by = paid.sure_by
      from paid
     where h.merchant_id = paid.merchant_id and h.live = paid.live and h.attempt_id = paid.attempt_id
)
update payment_attempt a
   set state = 'pending', acquirer_reference = paid.acquirer_reference, sure_by = paid.sure_by,
       lookup_at = paid.lookup_at, lookups = 0, leased_until = null
  from paid
 where a.merchant_id = paid.merchant_id and a.live = paid.live and a.id = paid.attempt_id
returning a.merchant_id, a.live, a.id as attempt_id;

-- name: name_instruments(merchant_ids, lives, attempt_ids, brands, last4s, wallets, stored_references, exp_months, exp_years, authenticated, slow)
-- What was paid with on the acquirer's page is known once it is paid; the attempt's card has been empty until then. That of
-- a renewal is its subscription's: what is kept there stays. Of a card that its customer saves it is known then, too, whether
-- their bank has seen them. The rows are of attempts whose pages should have kept what was paid with, and have not.
with told as (
    select *
      from unnest(:merchant_ids::bigint[], :lives::boolean[], :attempt_ids::bigint[], :brands::text[],
                  :last4s::text[], :wallets::text[], :stored_references::text[], :exp_months::integer[],
                  :exp_years::integer[], :authenticated::boolean[], :slow::boolean[])
        as o (merchant_id, live, attempt_id, brand, last4, wallet, stored_reference, exp_month, exp_year, authenticated,
              slow)
), seen as (
    update saved_instrument s
       set authenticated = true
      from told o
     where s.merchant_id = o.merchant_id and s.live = o.live and s.attempt_id = o.attempt_id
       and not s.authenticated and o.authenticated and o.stored_reference <> ''
), named as (
    update card c
       set brand = o.brand, last4 = o.last4, wallet = o.wallet, stored_reference = o.stored_reference,
           acquirer = case when o.stored_reference <> '' then a.acquirer else '' end,
           exp_month = o.exp_month, exp_year = o.exp_year, slow = o.slow
      from told o
      join payment_attempt a on a.merchant_id = o.merchant_id and a.live = o.live and a.id = o.attempt_id
     where c.merchant_id = a.merchant_id and c.live = a.live and c.id = a.card_id
       and c.stored_reference = '' and (c.last4 = '' or o.stored_reference <> '') and c.erased_at is null
)
select o.merchant_id, o.live, o.attempt_id
  from told o
  join hosted_page h on h.merchant_id = o.merchant_id and h.live = o.live and h.attempt_id = o.attempt_id
  join payment_attempt a on a.merchant_id = h.merchant_id and a.live = h.live and a.id = h.attempt_id
 where o.stored_reference = '' and h.asked <> '' and a.state in ('processing', 'challenged', 'pending')
   and ((h.asked::jsonb ->> 'keep')::boolean
        or o.last4 <> '' and coalesce((h.asked::jsonb ->> 'charge_later')::boolean, false));
