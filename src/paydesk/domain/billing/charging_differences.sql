-- name: find_place(merchant_id, live, subscription_id)^
-- The order under which a subscription's next difference is charged, made of the one that began it: the first one that no
-- payment has, or that was declined. Or it was paid, by a charge that our database has forgotten and that was written down
-- again from the acquirer's list: then `forgotten` is what it took.
select o.merchant_order_id, p.amount as forgotten, p.id as payment_id, p.attempt_id
  from subscription s
 cross join lateral (
     select s.init_merchant_order_id || ':plan-' || n as merchant_order_id
       from generate_series(1, 100 + (select count(*)
                                       from subscription_difference d
                                      where d.merchant_id = s.merchant_id and d.subscription_id = s.id)) n
      where not exists (
          select
            from payment p
           where p.merchant_id = s.merchant_id and p.live = s.live and not p.renewal
             and p.merchant_order_id = s.init_merchant_order_id || ':plan-' || n
             and not is_free_for_difference(p, s.id))
      order by n
      limit 1
 ) o
  left join payment p
    on p.merchant_id = s.merchant_id and p.live = s.live and p.merchant_order_id = o.merchant_order_id and not p.renewal
   and p.paid_at is not null
 where s.merchant_id = :merchant_id and s.live = :live and s.id = :subscription_id;

-- name: begin_difference(merchant_id, live, subscription_id, revision, merchant_order_id, amount, request_key, package_version_id, renewal_at, asked_by, proration, anchor, skipped, charge_digits, least_charge, pads, not_after, lookup_at, now)^
-- The intent, committed before the acquirer is called: payment, attempt, what becomes of the plan, and the mark that a
-- charge is in flight stand or fall together. The subscription must be of the revision that the difference was worked out
-- from, with nothing in flight, nobody may have given back more of the period's payment since, and its merchant may not be
-- suspended. Its order's one payment row decides, as at a checkout: it is new, or it was declined. The card is a copy with
-- no number, which whoever records that the charge was declined would erase.
with was as materialized (
    select s.*, m.key_tag, m.test_generation, m.settlement_days, nextval('payment_attempt_id_seq') as attempt_id,
           nextval('card_id_seq') as copy_id
      from subscription s
      join merchant m on m.id = s.merchant_id and not (s.live and m.suspended_at is not null)
     where s.merchant_id = :merchant_id and s.live = :live and s.id = :subscription_id and s.revision = :revision
       and s.state in ('Trial', 'Active') and s.charging_attempt_id is null and s.failures = 0
       and can_be_prorated(s.merchant_id, s.live, s.id, s.next_period, (:proration::jsonb ->> 'given_back')::numeric)
       for update of s
), held as (
    insert into payment as p (merchant_id, live, merchant_order_id, state, amount, currency, attempt_id, customer_id,
                              card_id, sign_version, key_id, pingback_url, created_at, funds_look_at)
    select was.merchant_id, was.live, :merchant_order_id, 'processing', :amount, v.currency, was.attempt_id,
           was.customer_id, was.copy_id, was.sign_version, was.key_id, was.pingback_url, :now,
           :now::timestamptz + make_interval(days => was.settlement_days)
      from was
      join package_version v
        on v.merchant_id = was.merchant_id and v.live = was.live and v.id = :package_version_id
        on conflict (merchant_id, live, merchant_order_id) where not renewal do update
       set state = 'processing', rare_state = null, funds_look_at = excluded.funds_look_at,
           amount = excluded.amount, currency = excluded.currency, attempt_id = excluded.attempt_id,
           customer_id = excluded.customer_id, card_id = excluded.card_id,
           sign_version = excluded.sign_version, key_id = excluded.key_id, pingback_url = excluded.pingback_url
     where p.state = 'declined' and is_free_for_difference(p, :subscription_id)
 returning p.*, p.xmax = 0 as is_first
), numbered as materialized (
    select held.*, case when is_first then 1 else next_attempt(merchant_id, live, id) end as number from held
), keyed as materialized (
    select n.*, derived_key(:pads::bytea, 'order ' || was.key_tag || ' '
               || case when n.live then 'live' else 'test ' || was.test_generation end || ' ' || n.number || ' '
               || n.merchant_order_id) as idempotency_key
      from numbered n cross join was
), card_kept as (
    insert into card (merchant_id, live, id, number_sealed, vault_key_id, bin, last4, brand, exp_month, exp_year,
                      holder, created_at)
    select c.merchant_id, c.live, held.card_id, null, '', c.bin, c.last4, c.brand, c.exp_month, c.exp_year, c.holder,
           :now
      from held
     cross join was
      join card c on c.merchant_id = was.merchant_id and c.live = was.live and c.id = was.card_id
), tried as (
    insert into payment_attempt (merchant_id, live, id, payment_id, state, idempotency_key, acquirer, capture, amount,
                                 currency, card_id, client_address, not_after, created_at, lookup_at, number)
    select k.merchant_id, k.live, k.attempt_id, k.id, 'processing', k.idempotency_key, was.acquirer, true, k.amount,
           k.currency, k.card_id, '', :not_after, :now, :lookup_at, k.number
      from keyed k cross join was
), noted as (
    insert into subscription_difference (merchant_id, live, attempt_id, subscription_id, request_key, package_version_id,
                                         renewal_at, asked_by, charged, charge_digits, least_charge, period_number,
                                         began_at, ends_at, at, old_price, new_price, given_back, amount, anchor,
                                         skipped)
    select k.merchant_id, k.live, k.attempt_id, :subscription_id, :request_key, :package_version_id, :renewal_at,
           :asked_by, k.amount, :charge_digits, :least_charge, n.period_number, n.began_at, n.ends_at, n.at,
           n.old_price, n.new_price, n.given_back, n.amount, :anchor::timestamptz, :skipped::integer
      from keyed k
     cross join jsonb_to_record(:proration::jsonb)
        as n (period_number integer, began_at timestamptz, ends_at timestamptz, at timestamptz, old_price numeric,
              new_price numeric, given_back numeric, amount numeric)
), marked as (
    update subscription s
       set charging_attempt_id = held.attempt_id
      from held
     where s.merchant_id = held.merchant_id and s.live = held.live and s.id = :subscription_id
)
select k.idempotency_key, k.number, was.key_tag, d.tag as deployment, d.epoch, k.merchant_id, k.live, k.attempt_id,
       k.amount, k.currency, k.id as payment_id, k.merchant_order_id, u.first_name, u.last_name, u.username, u.country,
       u.email, f.rate, f.fixed, f.reserve_rate, k.pingback_url as form_url, k.sign_version,
       m.pingback_url as account_url, m.test_pingback_url, m.went_live_at, m.pingback_format, m.time_zone, k.renewal,
       k.subscription_id, k.period_number, k.customer_id, k.card_id, k.key_id, was.acquirer, '' as terms_agreed,
       null::bigint as package_version_id, null::bigint as fresh_subscription_id,
       case when (select exists (select from alarm
                                  where merchant_id = 0 and live and kind = 'not_reconciled' and settled_at is null))
            then was_forgotten(:pads, was.acquirer,
                               'order ' || was.key_tag || ' '
                                   || case when k.live then 'live' else 'test ' || was.test_generation end || ' ',
                               k.number, ' ' || k.merchant_order_id)
            else false end as was_forgotten
  from keyed k
 cross join was
  join customer u on u.merchant_id = k.merchant_id and u.live = k.live and u.id = k.customer_id
  join merchant m on m.id = k.merchant_id
 cross join deployment d
 cross join lateral fees_in(k.merchant_id, k.currency) f;

-- name: take_up_difference(merchant_id, live, subscription_id, revision, attempt_id, request_key, package_version_id, renewal_at, asked_by, proration, anchor, skipped, charge_digits, least_charge)$
-- A difference that our database has forgotten was paid, as the acquirer's list says: what it took counts for the one that
-- is asked for now, by the same rules, and nobody is charged.
with was as materialized (
    select s.merchant_id, s.live, s.id
      from subscription s
     where s.merchant_id = :merchant_id and s.live = :live and s.id = :subscription_id and s.revision = :revision
       and s.state in ('Trial', 'Active') and s.charging_attempt_id is null and s.failures = 0
       and can_be_prorated(s.merchant_id, s.live, s.id, s.next_period, (:proration::jsonb ->> 'given_back')::numeric)
       for update of s
)
insert into subscription_difference (merchant_id, live, attempt_id, subscription_id, request_key, package_version_id,
                                     renewal_at, asked_by, charged, charge_digits, least_charge, period_number,
                                     began_at, ends_at, at, old_price, new_price, given_back, amount, anchor,
                                     skipped)
select was.merchant_id, was.live, p.attempt_id, was.id, :request_key, :package_version_id, :renewal_at, :asked_by,
       p.amount, :charge_digits, :least_charge, n.period_number, n.began_at, n.ends_at, n.at, n.old_price, n.new_price,
       n.given_back, n.amount, :anchor::timestamptz, :skipped::integer
  from was
  join payment_attempt a on a.merchant_id = was.merchant_id and a.live = was.live and a.id = :attempt_id
  join payment p on p.merchant_id = a.merchant_id and p.live = a.live and p.id = a.payment_id and p.attempt_id = a.id
   and p.paid_at is not null and is_free_for_difference(p, was.id)
 cross join jsonb_to_record(:proration::jsonb)
    as n (period_number integer, began_at timestamptz, ends_at timestamptz, at timestamptz, old_price numeric,
          new_price numeric, given_back numeric, amount numeric)
returning attempt_id;

-- name: pay_difference(merchant_id, live, attempt_id, now)$
-- The plan changes as if the difference had been paid just now.
select difference_is_paid(:merchant_id, :live, :attempt_id, :now)::text;
