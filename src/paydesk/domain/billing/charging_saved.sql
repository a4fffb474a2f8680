-- name: lock_shopper(merchant_id, live, id)$
-- Charges of one customer's cards come one after the other: what may still be taken is known once the one before is
-- committed. Who is being erased is waited for.
select u.id
  from saved_instrument s
  join shopper u on u.merchant_id = s.merchant_id and u.live = s.live and u.id = s.shopper_id
 where s.merchant_id = :merchant_id and s.live = :live and s.id = :id
   for no key update of u;

-- name: lock_instrument(merchant_id, live, id)$
-- Nobody removes a card, or takes back what they agreed to, until the charge is committed.
select id
  from saved_instrument
 where merchant_id = :merchant_id and live = :live and id = :id
   for no key update;

-- name: find_chargeable(merchant_id, live, id, merchant_order_id, since)^
-- A saved card with all that decides whether it may be charged without its customer, and what was charged so lately. What
-- was declined took nothing; what is open may have. Whoever saved the same card twice, for the same, agreed to one limit,
-- and a bank that refused it for good meant the card. Who charges one back, or the payment by which the card was saved,
-- agrees to nothing any more until they agree anew. What was adopted from the acquirer's list, by a card that ends alike and
-- at no checkout, may have been such a charge, which this database has forgotten: it counts, but for the very order that is
-- asked for again.
select s.id, s.acquirer, s.removed_at, s.charge_wording, s.charge_revoked_at, s.charge_limit, s.charge_currency,
       s.created_at, a.state as attempt_state, a.network_reference,
       coalesce(s.authenticated, a.challenge_url <> '') as authenticated,
       c.id as card_id, c.number_sealed, c.vault_key_id, c.exp_month, c.exp_year, c.holder,
       c.stored_reference, m.suspended_at is not null and s.live as suspended, l.charged + f.forgotten as charged, l.refused_for_good,
       l.charged_back or exists (select
                                   from chargeback k
                                  where k.merchant_id = s.merchant_id and k.live = s.live and k.payment_id = a.payment_id
                                    and k.state <> 'inquiry') as charged_back
  from saved_instrument s
  join payment_attempt a on a.merchant_id = s.merchant_id and a.live = s.live and a.id = s.attempt_id
  join card c on c.merchant_id = s.merchant_id and c.live = s.live and c.id = s.card_id
  join merchant m on m.id = s.merchant_id
 cross join lateral (
     select coalesce(sum(i.amount) filter (
                where i.created_at > :since and o.charge_for = s.charge_for and o.charge_currency = s.charge_currency
                  and b.state in ('processing', 'challenged', 'pending', 'approved')), 0) as charged,
            coalesce(bool_or(b.decline_reason in ('stolen_card', 'closed_account')), false) as refused_for_good,
            coalesce(bool_or(exists (select
                                       from chargeback k
                                      where k.merchant_id = i.merchant_id and k.live = i.live
                                        and k.payment_id = i.payment_id and k.state <> 'inquiry'
                                        and k.opened_at >= s.charge_agreed_at)), false) as charged_back
       from saved_instrument o
       join card d on d.merchant_id = o.merchant_id and d.live = o.live and d.id = o.card_id
       join instrument_charge i on i.merchant_id = o.merchant_id and i.live = o.live and i.instrument_id = o.id
       join payment_attempt b on b.merchant_id = i.merchant_id and b.live = i.live and b.id = i.attempt_id
      where o.merchant_id = s.merchant_id and o.live = s.live and o.shopper_id = s.shopper_id
        and (o.id = s.id or (d.brand, d.last4, d.exp_month, d.exp_year) = (c.brand, c.last4, c.exp_month, c.exp_year))
 ) l
 cross join lateral (
     select coalesce(sum(p.amount), 0) as forgotten
       from card d
      cross join lateral payments_with_card(d.merchant_id, d.live, d.id) own
       join payment p on p.merchant_id = d.merchant_id and p.live = d.live and p.id = own.payment_id
       join payment_attempt b on b.merchant_id = p.merchant_id and b.live = p.live and b.id = p.attempt_id
      where d.merchant_id = s.merchant_id and d.live = s.live and d.last4 = c.last4
        and p.checkout_id is null and p.subscription_id is null and p.currency = s.charge_currency
        and p.merchant_order_id <> :merchant_order_id and p.created_at > :since and p.created_at >= s.created_at
        and b.acquirer = s.acquirer and b.state in ('processing', 'challenged', 'pending', 'approved')
        and not exists (select
                          from instrument_charge i
                         where i.merchant_id = b.merchant_id and i.live = b.live and i.attempt_id = b.id)
        and not exists (select
                          from subscription_difference e
                         where e.merchant_id = b.merchant_id and e.live = b.live and e.attempt_id = b.id)
 ) f
 where s.merchant_id = :merchant_id and s.live = :live and s.id = :id;

-- name: begin_charge(merchant_id, live, instrument_id, merchant_order_id, amount, currency, description, request_key, pads, not_after, lookup_at, now)^
-- The intent, committed before the acquirer is called. As at a checkout the order's one payment row decides who may go: it
-- is new, or it was declined. The payment has a customer and a card of its own, with the words of the payment by which the
-- card was saved, and no number.
with source as (
    select s.id as instrument_id, s.acquirer, s.card_id, p.customer_id, p.sign_version, p.key_id, p.pingback_url,
           m.key_tag, m.test_generation, m.id as merchant_id, m.settlement_days, s.live
      from saved_instrument s
      join payment_attempt a on a.merchant_id = s.merchant_id and a.live = s.live and a.id = s.attempt_id
      join payment p on p.merchant_id = a.merchant_id and p.live = a.live and p.id = a.payment_id
      join merchant m on m.id = s.merchant_id
     where s.merchant_id = :merchant_id and s.live = :live and s.id = :instrument_id
), fresh as (
    select nextval('customer_id_seq') as customer_id, nextval('card_id_seq') as card_id,
           nextval('payment_attempt_id_seq') as attempt_id
), held as (
    insert into payment as p (merchant_id, live, merchant_order_id, state, amount, currency, attempt_id, customer_id,
                              card_id, sign_version, key_id, pingback_url, created_at, funds_look_at)
    select s.merchant_id, s.live, :merchant_order_id, 'processing', :amount, :currency, f.attempt_id, f.customer_id,
           f.card_id, s.sign_version, s.key_id, s.pingback_url, :now,
           :now::timestamptz + make_interval(days => s.settlement_days)
      from source s cross join fresh f
        on conflict (merchant_id, live, merchant_order_id) where not renewal do update
       set state = 'processing', rare_state = null, funds_look_at = excluded.funds_look_at,
           amount = excluded.amount, currency = excluded.currency, checkout_id = null,
           attempt_id = excluded.attempt_id, customer_id = excluded.customer_id, card_id = excluded.card_id,
           sign_version = excluded.sign_version, key_id = excluded.key_id, pingback_url = excluded.pingback_url
     where p.state = 'declined'
 returning p.*, p.xmax = 0 as is_first
), numbered as materialized (
    select held.*, case when is_first then 1 else next_attempt(merchant_id, live, id) end as number from held
), keyed as materialized (
    select n.*, derived_key(:pads::bytea, 'order ' || s.key_tag || ' '
               || case when n.live then 'live' else 'test ' || s.test_generation end || ' ' || n.number || ' '
               || n.merchant_order_id) as idempotency_key
      from numbered n cross join source s
), customer_kept as (
    insert into customer (merchant_id, live, id, email, first_name, last_name, username, country, language, created_at)
    select u.merchant_id, u.live, held.customer_id, u.email, u.first_name, u.last_name, u.username, u.country,
           u.language, :now
      from held
     cross join source s
      join customer u on u.merchant_id = s.merchant_id and u.live = s.live and u.id = s.customer_id
 returning first_name, last_name, username, country, email
), card_kept as (
    insert into card (merchant_id, live, id, number_sealed, vault_key_id, bin, last4, brand, exp_month, exp_year,
                      holder, created_at)
    select c.merchant_id, c.live, held.card_id, null, '', c.bin, c.last4, c.brand, c.exp_month, c.exp_year, c.holder,
           :now
      from held
     cross join source s
      join card c on c.merchant_id = s.merchant_id and c.live = s.live and c.id = s.card_id
), tried as (
    insert into payment_attempt (merchant_id, live, id, payment_id, state, idempotency_key, acquirer, capture, amount,
                                 currency, card_id, client_address, not_after, created_at, lookup_at, number)
    select k.merchant_id, k.live, k.attempt_id, k.id, 'processing', k.idempotency_key, s.acquirer, true, k.amount,
           k.currency, k.card_id, '', :not_after, :now, :lookup_at, k.number
      from keyed k cross join source s
), charged as (
    insert into instrument_charge (merchant_id, live, attempt_id, payment_id, instrument_id, request_key, description,
                                   amount, currency, created_at)
    select merchant_id, live, attempt_id, id, :instrument_id, :request_key, :description, amount, currency, :now
      from keyed
), used as (
    update saved_instrument s
       set used_at = greatest(s.used_at, :now)
      from held
     where s.merchant_id = held.merchant_id and s.live = held.live and s.id = :instrument_id
)
select k.idempotency_key, k.number, s.key_tag, d.tag as deployment, d.epoch, k.merchant_id, k.live, k.attempt_id,
       k.amount, k.currency, k.id as payment_id, k.merchant_order_id, u.first_name, u.last_name, u.username, u.country,
       u.email, f.rate, f.fixed, f.reserve_rate, k.pingback_url as form_url, k.sign_version,
       m.pingback_url as account_url, m.test_pingback_url, m.went_live_at, m.pingback_format, m.time_zone, k.renewal,
       k.subscription_id, k.period_number, k.customer_id, k.card_id, k.key_id, s.acquirer, '' as terms_agreed,
       null::bigint as package_version_id, null::bigint as fresh_subscription_id,
       case when (select exists (select from alarm
                                  where merchant_id = 0 and live and kind = 'not_reconciled' and settled_at is null))
            then was_forgotten(:pads, s.acquirer,
                               'order ' || s.key_tag || ' '
                                   || case when k.live then 'live' else 'test ' || s.test_generation end || ' ',
                               k.number, ' ' || k.merchant_order_id)
            else false end as was_forgotten
  from keyed k
 cross join source s
 cross join customer_kept u
  join merchant m on m.id = k.merchant_id
 cross join deployment d
 cross join lateral fees_in(k.merchant_id, k.currency) f;

-- name: take_up_charge(merchant_id, live, instrument_id, merchant_order_id, amount, currency, description, request_key)^
-- A charge whose request our database has forgotten, and whose purchase was written down again from the acquirer's list:
-- its order is paid, by this card and this amount, and by no checkout and no other charge. Its caller sends it again.
insert into instrument_charge (merchant_id, live, attempt_id, payment_id, instrument_id, request_key, description, amount,
                               currency, created_at)
select p.merchant_id, p.live, a.id, p.id, s.id, :request_key, :description, p.amount, p.currency, a.created_at
  from saved_instrument s
  join card c on c.merchant_id = s.merchant_id and c.live = s.live and c.id = s.card_id
  join payment p
    on p.merchant_id = s.merchant_id and p.live = s.live and p.merchant_order_id = :merchant_order_id and not p.renewal
  join payment_attempt a on a.merchant_id = p.merchant_id and a.live = p.live and a.id = p.attempt_id
  join card d on d.merchant_id = p.merchant_id and d.live = p.live and d.id = p.card_id
 where s.merchant_id = :merchant_id and s.live = :live and s.id = :instrument_id
   and p.checkout_id is null and p.subscription_id is null and p.amount = :amount and p.currency = :currency
   and a.state = 'approved' and a.acquirer = s.acquirer and d.last4 = c.last4 and a.created_at >= s.created_at
   and not exists (select
                     from instrument_charge i
                    where i.merchant_id = p.merchant_id and i.live = p.live and i.attempt_id = a.id)
   and not exists (select
                     from subscription_difference e
                    where e.merchant_id = p.merchant_id and e.live = p.live and e.attempt_id = a.id)
returning attempt_id;

-- name: find_charge(merchant_id, live, request_key)^
-- What became of the charge under a caller's key. Its attempt tells: the order may have been paid another way since.
select i.payment_id, i.instrument_id, p.merchant_order_id, i.amount, i.currency, i.description, a.state,
       a.decline_reason
  from instrument_charge i
  join payment_attempt a on a.merchant_id = i.merchant_id and a.live = i.live and a.id = i.attempt_id
  join payment p on p.merchant_id = i.merchant_id and p.live = i.live and p.id = i.payment_id
 where i.merchant_id = :merchant_id and i.live = :live and i.request_key = :request_key;
