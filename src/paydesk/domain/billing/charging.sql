-- name: sides_to_charge(real_now, after_merchant, after_live, most)
-- The sides (merchant and mode) with something to charge some day, that many from a place on, in order, each with its own
-- time and whether anything is due by it; a suspended merchant's live side has nothing due until that is lifted. A test
-- side's time runs ahead by its clock. One index probe finds each next side.
with recursive side as (
    (select merchant_id, live
       from subscription
      where date_next is not null
        and (merchant_id, live) > (:after_merchant::bigint, :after_live::boolean)
      order by merchant_id, live
      limit 1)
     union all
    (select next.merchant_id, next.live
       from side
      cross join lateral (
          select s.merchant_id, s.live
            from subscription s
           where s.date_next is not null
             and (s.merchant_id, s.live) > (side.merchant_id, side.live)
           order by s.merchant_id, s.live
           limit 1
      ) next)
), timed as (
    select side.merchant_id, side.live,
           :real_now::timestamptz + side_clock(side.live, m.test_clock) as shop_now,
           side.live and m.suspended_at is not null as suspended
      from (select * from side limit :most) side
      join merchant m on m.id = side.merchant_id
)
select timed.merchant_id, timed.live, timed.shop_now,
       not timed.suspended and coalesce(timed.merchant_id <> all (array(select merchant_id from merchant_fence)), true)
       and exists (
               select
                 from subscription s
                where s.merchant_id = timed.merchant_id and s.live = timed.live and s.date_next <= timed.shop_now
                  and s.charging_attempt_id is null and s.charge_takes_long is null) as due
  from timed
 order by merchant_id, live;

-- name: begin_renewals(merchant_ids, lives, shop_nows, pads, not_after, lookup_at, per_side, most, only)
-- Claims due subscriptions and commits the intent to charge each: payment, attempt and the mark that a charge is in
-- flight stand or fall together. Fair between merchants: at most so many of each side given, whose time is given too;
-- none of a merchant that has been suspended since. Its balance is charged with the price of a period. The key is made of
-- that of the subscription's first purchase, the period and the number of its attempts. (A row that is new was locked by nobody, so its xmax is 0.)
-- What an approval reports comes with it, and the subscription as it stands, so that neither is read again; also whether
-- the acquirer's list had a purchase of this period that our books had forgotten, and whether it was paused since it was
-- paid last (its calendar does not begin where it began, then). (What was claimed is joined to its payment once, and
-- fully: the planner takes it for a few rows, and would compare each with each; a full join, whose rest the coalesce
-- leaves out where it does not look, is always one by hash or order. What is the same for all that are charged by some
-- terms is read once, and before the rest: to plan one join of all these tables takes a tenth of a second, in each
-- session, whenever one of them has been analyzed. Where each row needs one of a table that may be big it is read by a limit
-- of one, so that the planner looks it up and never reads the table whole.)
with timed as (
    select side.*, m.settlement_days
      from unnest(:merchant_ids::bigint[], :lives::boolean[], :shop_nows::timestamptz[])
        as side (merchant_id, live, shop_now)
      join merchant m on m.id = side.merchant_id and not (side.live and m.suspended_at is not null)
     where coalesce(side.merchant_id <> all (array(select merchant_id from merchant_fence)), true)
), due as materialized (
    select s.merchant_id, s.live, s.id, s.state, s.package_version_id, s.init_payment_id, s.init_merchant_order_id,
           s.customer_id, s.card_id, s.acquirer, s.network_reference, s.sign_version, s.key_id, s.pingback_url,
           s.time_zone, s.anchor, s.next_period, s.date_next, s.date_start, s.created_at, s.failures, s.counter,
           s.paid_number_counter, s.date_active, s.date_paid, s.date_end, s.date_expired, s.date_cancelled,
           s.date_stopped, s.cancelled_by, s.revision, s.skipped, s.balance, s.charge_digits, s.least_charge,
           timed.shop_now, timed.settlement_days, nextval('payment_attempt_id_seq') as attempt_id
      from timed
     cross join lateral (
         select *
           from subscription s
          where s.merchant_id = timed.merchant_id and s.live = timed.live and s.date_next <= timed.shop_now
            and s.charging_attempt_id is null and s.charge_takes_long is null
            and coalesce(s.id = any(:only::bigint[]), true)
          order by s.date_next
          limit :per_side
            for update skip locked
     ) s
     limit :most
), held as (
    insert into payment as p (merchant_id, live, merchant_order_id, state, amount, currency, attempt_id, customer_id,
                              card_id, sign_version, key_id, pingback_url, created_at, subscription_id, period_number,
                              renewal, into_balance, funds_look_at)
    select due.merchant_id, due.live,
           due.init_merchant_order_id || ':' || due.next_period + (v.trial_length > 0)::integer,
           'processing', c.charge, v.currency, due.attempt_id, due.customer_id, due.card_id, due.sign_version,
           due.key_id, due.pingback_url, due.shop_now, due.id, due.next_period, true, v.price - c.charge,
           case when c.charge > 0 then due.shop_now + make_interval(days => due.settlement_days) end
      from due
      join package_version v
        on v.merchant_id = due.merchant_id and v.live = due.live and v.id = due.package_version_id
     cross join lateral (
         select renewal_charge(v.price, due.balance, v.currency, due.charge_digits, due.least_charge, due.live) as charge
     ) c
        on conflict (merchant_id, live, subscription_id, period_number) where subscription_id is not null
        do update set state = 'processing', rare_state = null, funds_look_at = excluded.funds_look_at,
                      attempt_id = excluded.attempt_id, card_id = excluded.card_id,
                      amount = chargeable(p.amount, p.into_balance, p.currency, p.live),
                      into_balance = p.into_balance + p.amount
                                     - chargeable(p.amount, p.into_balance, p.currency, p.live)
     where p.state = 'declined'
 returning p.merchant_id, p.live, p.id, p.attempt_id, p.merchant_order_id, p.amount, p.currency, p.subscription_id,
           p.period_number, p.renewal, p.xmax = 0 as is_first
), numbered as materialized (
    select due.attempt_id, due.merchant_id, due.live, due.init_payment_id, due.package_version_id, due.acquirer,
           due.card_id, due.shop_now, held.id as payment_id, held.merchant_order_id, held.amount, held.currency,
           held.period_number, held.renewal,
           case when held.is_first then 1 else next_attempt(held.merchant_id, held.live, held.id) end as number
      from held
      full join due on due.attempt_id = held.attempt_id
     where coalesce(held.id > 0, false)
), keyed as materialized (
    select n.*, derived_key(:pads::bytea, 'renewal ' || f.idempotency_key || ' ' || n.period_number || ' '
                                          || n.number) as idempotency_key, f.idempotency_key as of_key
      from numbered n
     cross join lateral (
         select a.idempotency_key
           from payment i
           join payment_attempt a on a.merchant_id = i.merchant_id and a.id = i.attempt_id
          where i.merchant_id = n.merchant_id and i.id = n.init_payment_id
          limit 1
     ) f
), marked as (
    update subscription s
       set charging_attempt_id = held.attempt_id
      from held
     where s.merchant_id = held.merchant_id and s.live = held.live and s.id = held.subscription_id
), tried as (
    insert into payment_attempt (merchant_id, live, id, payment_id, state, idempotency_key, acquirer, capture, amount,
                                 currency, card_id, client_address, not_after, created_at, lookup_at,
                                 number)
    select merchant_id, live, attempt_id, payment_id, 'processing', idempotency_key, acquirer, true, amount, currency,
           card_id, '', :not_after, shop_now, :lookup_at, number
      from keyed
), charged as materialized (
    select distinct merchant_id, live, package_version_id, currency from keyed
), fees as materialized (
    select c.merchant_id, c.currency, f.*
      from (select distinct merchant_id, currency from charged) c
     cross join lateral fees_in(c.merchant_id, c.currency) f
), terms as materialized (
    select c.currency as charged_in, t.*, m.key_tag, m.charge_missed_until, m.pingback_url as account_url,
           m.test_pingback_url, m.went_live_at, m.pingback_format, f.rate, f.fixed, f.reserve_rate
      from charged c
      join package_terms t
        on t.merchant_id = c.merchant_id and t.live = c.live and t.package_version_id = c.package_version_id
      join merchant m on m.id = c.merchant_id
      join fees f on f.merchant_id = c.merchant_id and f.currency = c.currency
), due_by_terms as materialized (
    select due.*, k.payment_id, k.merchant_order_id, k.amount, k.period_number, k.renewal, k.number, k.idempotency_key,
           k.of_key, t.key_tag, t.charge_missed_until, t.package_id, t.sku_id, t.subscriptions_count, t.package_name,
           t.currency, t.price, t.period_length, t.period_unit, t.trial_price, t.trial_length, t.trial_unit,
           t.payment_limit, t.list_price, t.discount_periods, t.quantity, t.rate, t.fixed, t.reserve_rate,
           t.account_url, t.test_pingback_url, t.went_live_at, t.pingback_format
      from keyed k
      full join due on due.attempt_id = k.attempt_id
      full join terms t
        on t.merchant_id = k.merchant_id and t.live = k.live and t.package_version_id = k.package_version_id
       and t.charged_in = k.currency
     where coalesce(k.attempt_id > 0, false)
)
select due.attempt_id, due.payment_id, due.merchant_order_id, due.amount, due.id as subscription_id,
       due.period_number, due.renewal, due.idempotency_key, due.number,
       case when (select exists (select from alarm
                                  where merchant_id = 0 and live and kind = 'not_reconciled' and settled_at is null))
            then was_forgotten(:pads, due.acquirer, 'renewal ' || due.of_key || ' ' || due.period_number || ' ',
                               due.number, '')
            else false end as was_forgotten,
       due.anchor <> due.date_start
       and exists (select
                     from subscription_change g
                    where g.merchant_id = due.merchant_id and g.live = due.live and g.subscription_id = due.id
                      and g.type = 'resume' and g.state = 'done' and g.finished_at >= due.date_paid) as was_paused,
       due.key_tag, d.tag as deployment, d.epoch,
       due.merchant_id, due.live, due.shop_now, due.network_reference, due.acquirer, due.sign_version,
       due.pingback_url as form_url,
       due.id, due.state, due.init_payment_id, due.init_merchant_order_id, due.time_zone, due.anchor, due.next_period,
       due.date_next, due.date_start, due.created_at, due.failures, due.counter, due.paid_number_counter,
       due.date_active, due.date_paid, due.date_end, due.date_expired, due.date_cancelled, due.date_stopped,
       due.cancelled_by, due.revision, coalesce(due.skipped, 0) as skipped, due.shop_now as tried_at,
       due.charge_missed_until,
       due.package_version_id, due.package_id, due.sku_id, due.subscriptions_count,
       due.package_name, due.currency, due.price, due.period_length,
       due.period_unit, due.trial_price, due.trial_length, due.trial_unit,
       due.payment_limit, due.list_price, due.discount_periods, due.quantity,
       c.id as card_id, c.number_sealed, c.vault_key_id, c.exp_month, c.exp_year, c.holder, c.refused_as,
       c.stored_reference,
       u.first_name, u.last_name, u.username, u.country, u.email,
       due.rate, due.fixed, due.reserve_rate,
       due.account_url, due.test_pingback_url, due.went_live_at, due.pingback_format
  from due_by_terms due
 cross join lateral (
     select * from card c where c.merchant_id = due.merchant_id and c.live = due.live and c.id = due.card_id limit 1
 ) c
 cross join lateral (
     select *
       from customer u
      where u.merchant_id = due.merchant_id and u.live = due.live and u.id = due.customer_id
      limit 1
 ) u
  cross join deployment d;

-- name: due_to_renew(merchant_ids, lives, shop_nows, most)
-- The subscriptions that are due, oldest first of each side.
select s.merchant_id, s.live, s.id
  from unnest(:merchant_ids::bigint[], :lives::boolean[], :shop_nows::timestamptz[])
    as side (merchant_id, live, shop_now)
 cross join lateral (
     select merchant_id, live, id
       from subscription
      where merchant_id = side.merchant_id and live = side.live and date_next <= side.shop_now
        and charging_attempt_id is null and charge_takes_long is null
      order by date_next
      limit :most
 ) s;

-- name: postpone(merchant_ids, lives, ids, shop_nows, pause)!
-- What could not be begun is due again later, by its side's own time; its calendar stays.
update subscription s
   set date_next = greatest(s.date_next, r.shop_now) + :pause::interval
  from unnest(:merchant_ids::bigint[], :lives::boolean[], :ids::bigint[], :shop_nows::timestamptz[])
    as r (merchant_id, live, id, shop_now)
 where s.merchant_id = r.merchant_id and s.live = r.live and s.id = r.id and s.date_next is not null
   and s.charging_attempt_id is null;
