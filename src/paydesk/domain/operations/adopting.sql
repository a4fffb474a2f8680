-- name: orders_known(pads, keys, tags, lives, orders, numbers)
-- What is known of the orders that forgotten purchases were for: whose they are, how their payments stand, and whether
-- each key is made, with our secret, of what its mark tells.
select a.key, m.id as merchant_id, side_clock(a.live, m.test_clock) as clock,
       derived_key(:pads::bytea, 'order ' || m.key_tag || ' '
                   || case when a.live then 'live' else 'test ' || m.test_generation end || ' ' || a.number || ' '
                   || a.merchant_order_id) = a.key as is_ours,
       p.state, p.attempt_id as held_by
  from unnest(:keys::text[], :tags::text[], :lives::boolean[], :orders::text[], :numbers::integer[])
    as a (key, tag, live, merchant_order_id, number)
  join merchant m on m.key_tag = a.tag
  left join payment p
    on p.merchant_id = m.id and p.live = a.live and p.merchant_order_id = a.merchant_order_id and not p.renewal;

-- name: checkouts_of(keys, merchant_ids, lives, orders, amounts, currencies)
-- The forms by which shops asked for the amounts that forgotten purchases took, newest first, with their terms.
select a.key, c.id as checkout_id, t.package_version_id is not null as has_package, c.merchant_id, c.live,
       t.package_version_id, t.package_id, t.sku_id, t.subscriptions_count, t.package_name, t.currency, t.price,
       t.period_length, t.period_unit, t.trial_price, t.trial_length, t.trial_unit, t.payment_limit,
       t.list_price, t.discount_periods, t.quantity
  from unnest(:keys::text[], :merchant_ids::bigint[], :lives::boolean[], :orders::text[], :amounts::numeric[],
              :currencies::text[])
    as a (key, merchant_id, live, merchant_order_id, amount, currency)
 cross join lateral (
     select c.*
       from checkout c
      where c.merchant_id = a.merchant_id and c.live = a.live and c.merchant_order_id = a.merchant_order_id
        and a.amount in (coalesce(c.first_amount, c.amount),
                         taken(coalesce(c.first_amount, c.amount), c.currency, c.live)) and c.currency = a.currency
      order by c.id desc
      limit 20
 ) c
  left join package_terms t
    on t.merchant_id = c.merchant_id and t.live = c.live and t.package_version_id = c.package_version_id
 order by c.id desc;

-- name: renewals_known(pads, keys, tags, lives, orders, periods, numbers)
-- The same for renewals: their subscriptions are known by the order that began them.
select a.key, m.id as merchant_id, side_clock(a.live, m.test_clock) as clock,
       derived_key(:pads::bytea, 'renewal ' || f.idempotency_key || ' ' || a.period || ' ' || a.number)
           = a.key as is_ours,
       s.id as subscription_id, s.next_period, s.charging_attempt_id, v.currency, p.state,
       renewal_charge(v.price, s.balance, v.currency, s.charge_digits, s.least_charge, s.live) as price
  from unnest(:keys::text[], :tags::text[], :lives::boolean[], :orders::text[], :periods::integer[],
              :numbers::integer[])
    as a (key, tag, live, merchant_order_id, period, number)
  join merchant m on m.key_tag = a.tag
  left join payment i
    on i.merchant_id = m.id and i.live = a.live and i.merchant_order_id = a.merchant_order_id and not i.renewal
  left join payment_attempt f on f.merchant_id = i.merchant_id and f.live = i.live and f.id = i.attempt_id
  left join subscription s on s.merchant_id = i.merchant_id and s.live = i.live and s.init_payment_id = i.id
  left join package_version v
    on v.merchant_id = s.merchant_id and v.live = s.live and v.id = s.package_version_id
  left join payment p
    on p.merchant_id = s.merchant_id and p.live = s.live and p.subscription_id = s.id and p.period_number = a.period;

-- name: payment_ids_taken(ids)
-- Ids name one payment in the whole deployment; each merchant's index is asked.
select p.id
  from merchant m
  join payment p on p.merchant_id = m.id and p.id = any(:ids::bigint[]);

-- name: subscription_ids_taken(ids)
select s.id
  from merchant m
  join subscription s on s.merchant_id = m.id and s.id = any(:ids::bigint[]);

-- name: pass_ids(payment_id, subscription_id)!
-- Ids that were given out before, as marks tell, are given to nobody else.
select pass_id('payment_id_seq', :payment_id), pass_id('subscription_id_seq', :subscription_id);

-- name: keep_from_giving_back()!
-- Nobody begins to give a purchase back until this transaction is over, and what was begun is seen by the next statement.
select from deployment for share;

-- name: begin_order(merchant_id, live, payment_id, merchant_order_id, amount, currency, checkout_id, held_by, idempotency_key, number, acquirer, capture, last4, not_after, at)^
-- A forgotten purchase of an order, as if its intent had just been committed; its approval is recorded within the same
-- transaction. The order's one payment row decides, as when it is paid: it is new, or declined and still as it was seen.
-- What a form told that was forgotten too (whom to tell, in which version) is as the account says; the customer and the
-- card stay unknown. (A row that is new was locked by nobody, so its xmax is 0.)
with said as (
    select coalesce(c.sign_version, m.sign_version) as sign_version,
           coalesce(c.key_id, (select max(id) from merchant_key where merchant_id = m.id)) as key_id,
           c.id as checkout_id, c.pingback_url, coalesce(c.email, '') as email,
           coalesce(c.first_name, '') as first_name, coalesce(c.last_name, '') as last_name,
           coalesce(c.country, '') as country,
           nextval('payment_attempt_id_seq') as attempt_id, nextval('customer_id_seq') as customer_id,
           nextval('card_id_seq') as card_id
      from merchant m
      left join checkout c on c.merchant_id = m.id and c.live = :live and c.id = :checkout_id::bigint
     where m.id = :merchant_id
       and not exists (select
                         from purchase_given_back
                        where acquirer = :acquirer and idempotency_key = :idempotency_key and state <> 'refused')
), held as (
    insert into payment as p (merchant_id, live, id, merchant_order_id, state, amount, currency, checkout_id, attempt_id,
                              customer_id, card_id, sign_version, key_id, pingback_url, created_at)
    select :merchant_id, :live, :payment_id, :merchant_order_id, 'processing', :amount, :currency, checkout_id,
           attempt_id, customer_id, card_id, sign_version, key_id, pingback_url, :at
      from said
        on conflict (merchant_id, live, merchant_order_id) where not renewal do update
       set state = 'processing', rare_state = null, amount = excluded.amount, currency = excluded.currency,
           checkout_id = coalesce(excluded.checkout_id, p.checkout_id), attempt_id = excluded.attempt_id,
           card_id = excluded.card_id
     where p.state = 'declined' and p.attempt_id = :held_by::bigint
 returning p.*, p.xmax = 0 as is_first
), customer_kept as (
    insert into customer (merchant_id, live, id, email, first_name, last_name, username, country, created_at)
    select held.merchant_id, held.live, held.customer_id, said.email, said.first_name, said.last_name, said.email,
           said.country, :at
      from held cross join said
     where held.is_first
), card_kept as (
    insert into card (merchant_id, live, id, number_sealed, vault_key_id, bin, last4, brand, exp_month, exp_year,
                      holder, created_at)
    select merchant_id, live, card_id, null, '', '', :last4, 'unknown', 0, 0, '', :at
      from held
), tried as (
    insert into payment_attempt (merchant_id, live, id, payment_id, checkout_id, state, idempotency_key, acquirer,
                                 capture, amount, currency, card_id, client_address, not_after, created_at, lookup_at,
                                 number)
    select held.merchant_id, held.live, held.attempt_id, held.id, said.checkout_id, 'processing', :idempotency_key,
           :acquirer, :capture, held.amount, held.currency, held.card_id, '', :not_after, :at, :not_after, :number
      from held cross join said
)
select id as payment_id, attempt_id from held;

-- name: begin_renewal(merchant_id, live, payment_id, subscription_id, period, amount, currency, idempotency_key, number, acquirer, not_after, at)^
-- A forgotten renewal, as if its intent had just been committed. The subscription must wait for this very period, and
-- nothing of it may be in flight: it is locked, so that the billing run passes it over.
with due as materialized (
    select s.*, nextval('payment_attempt_id_seq') as attempt_id
      from subscription s
     where s.merchant_id = :merchant_id and s.live = :live and s.id = :subscription_id
       and s.next_period = :period and s.charging_attempt_id is null
       and not exists (select
                         from purchase_given_back
                        where acquirer = :acquirer and idempotency_key = :idempotency_key and state <> 'refused')
       for update of s
), held as (
    insert into payment as p (merchant_id, live, id, merchant_order_id, state, amount, currency, attempt_id, customer_id,
                              card_id, sign_version, key_id, pingback_url, created_at, subscription_id, period_number,
                              renewal, into_balance)
    select due.merchant_id, due.live, :payment_id,
           due.init_merchant_order_id || ':' || due.next_period + (v.trial_length > 0)::integer, 'processing',
           :amount, :currency, due.attempt_id, due.customer_id, due.card_id, due.sign_version, due.key_id,
           due.pingback_url, :at, due.id, due.next_period, true, v.price - :amount
      from due
      join package_version v
        on v.merchant_id = due.merchant_id and v.live = due.live and v.id = due.package_version_id
        on conflict (merchant_id, live, subscription_id, period_number) where subscription_id is not null
        do update set state = 'processing', rare_state = null, attempt_id = excluded.attempt_id,
                      card_id = excluded.card_id, amount = excluded.amount, into_balance = excluded.into_balance
     where p.state = 'declined'
 returning p.*
), marked as (
    update subscription s
       set charging_attempt_id = held.attempt_id
      from held
     where s.merchant_id = held.merchant_id and s.live = held.live and s.id = held.subscription_id
), tried as (
    insert into payment_attempt (merchant_id, live, id, payment_id, state, idempotency_key, acquirer, capture, amount,
                                 currency, card_id, client_address, not_after, created_at, lookup_at, number)
    select merchant_id, live, attempt_id, id, 'processing', :idempotency_key, :acquirer, true, amount, currency,
           card_id, '', :not_after, :at, :not_after, :number
      from held
)
select id as payment_id, attempt_id from held;
