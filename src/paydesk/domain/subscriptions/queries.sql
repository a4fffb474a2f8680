-- name: agree_package(merchant_id, live, sku_id, name, currency, price, period_length, period_unit, trial_price, trial_length, trial_unit, payment_limit, now)$
-- The version of a package with exactly these terms: other terms under the same SKU are another version.
with known as (
    select v.id
      from subscription_package k
      join package_version v on v.merchant_id = k.merchant_id and v.live = k.live and v.package_id = k.id
     where k.merchant_id = :merchant_id and k.live = :live and k.sku_id = :sku_id
       and v.name = :name and v.currency = :currency and v.price = :price
       and v.period_length = :period_length and v.period_unit = :period_unit
       and v.trial_price = :trial_price and v.trial_length = :trial_length and v.trial_unit = :trial_unit
       and v.payment_limit = :payment_limit
), package as (
    insert into subscription_package (merchant_id, live, sku_id, created_at)
    select :merchant_id, :live, :sku_id, :now where not exists (select from known)
        on conflict (merchant_id, live, sku_id) do update set sku_id = excluded.sku_id
 returning id
), fresh as (
    insert into package_version (merchant_id, live, package_id, name, currency, price, period_length, period_unit,
                                 trial_price, trial_length, trial_unit, payment_limit, created_at)
    select :merchant_id, :live, package.id, :name, :currency, :price, :period_length, :period_unit,
           :trial_price, :trial_length, :trial_unit, :payment_limit, :now
      from package
        on conflict (merchant_id, live, package_id, price, currency, period_length, period_unit, trial_price,
                     trial_length, trial_unit, payment_limit, name)
        do update set name = excluded.name
 returning id
)
select id from known union all select id from fresh;

-- name: find(merchant_id, live, id)^
select * from subscription_whole where merchant_id = :merchant_id and live = :live and id = :id;

-- name: end_subscription(subscriptions, event, payload, pingback_url, pingback_format, now)$
-- The version given is written if nobody else wrote one first, together with the pingback that reports it; the number
-- of its card is erased, since nothing is charged any more. (Each card is of one attempt or one change, so that no
-- other subscription has it.)
with fresh as (
    select * from jsonb_populate_recordset(null::subscription, :subscriptions::jsonb)
), moved as (
    update subscription s
       set state = f.state, date_next = null, date_cancelled = f.date_cancelled, date_stopped = f.date_stopped,
           date_expired = f.date_expired, cancelled_by = f.cancelled_by, revision = f.revision
      from fresh f
     where s.merchant_id = f.merchant_id and s.live = f.live and s.id = f.id and s.revision = f.revision - 1
       and s.state in ('Trial', 'Active')
 returning s.*
), told as (
    insert into pingback (merchant_id, live, event, subscription_id, url, sign_version, key_id, format, payload,
                          state, due_at, created_at)
    select s.merchant_id, s.live, :event, s.id, :pingback_url::text, s.sign_version, s.key_id, :pingback_format,
           :payload,
           case when :event::text = any(m.muted_events) then 'muted'
                when :pingback_url::text is null then 'waiting' else 'due' end, :now, :now
      from moved s
      join merchant m on m.id = s.merchant_id
     where :payload::text is not null
), card_forgotten as (
    update card c
       set number_sealed = null, erased_at = :now
      from moved
     where c.merchant_id = moved.merchant_id and c.live = moved.live and c.id = moved.card_id
       and c.number_sealed is not null
)
select id from moved;

-- name: account(merchant_id)^
select pingback_url, test_pingback_url, went_live_at, pingback_format, extra_events, time_zone, test_clock
  from merchant
 where id = :merchant_id;

-- name: sides_to_charge(real_now, after_merchant, after_live, most)
-- The sides (merchant and mode) with something to charge some day, that many from a place on, in order, each with its own
-- time and whether anything is due by it; a suspended merchant's live side has nothing due until that is lifted. A test
-- side's time runs ahead by its clock. One index probe finds each next side.
with recursive side as (
    (select merchant_id, live
       from subscription
      where date_next is not null and charging_attempt_id is null
        and (merchant_id, live) > (:after_merchant::bigint, :after_live::boolean)
      order by merchant_id, live
      limit 1)
     union all
    (select next.merchant_id, next.live
       from side
      cross join lateral (
          select s.merchant_id, s.live
            from subscription s
           where s.date_next is not null and s.charging_attempt_id is null
             and (s.merchant_id, s.live) > (side.merchant_id, side.live)
           order by s.merchant_id, s.live
           limit 1
      ) next)
), timed as (
    select side.merchant_id, side.live,
           :real_now::timestamptz + case when side.live then interval '0' else m.test_clock end as shop_now,
           side.live and m.suspended_at is not null as suspended
      from (select * from side limit :most) side
      join merchant m on m.id = side.merchant_id
)
select timed.merchant_id, timed.live, timed.shop_now,
       not timed.suspended and exists (
               select
                 from subscription s
                where s.merchant_id = timed.merchant_id and s.live = timed.live and s.date_next <= timed.shop_now
                  and s.charging_attempt_id is null) as due
  from timed
 order by merchant_id, live;

-- name: begin_renewals(merchant_ids, lives, shop_nows, pads, not_after, lookup_at, per_side, most, only)
-- Claims due subscriptions and commits the intent to charge each: payment, attempt and the mark that a charge is in
-- flight stand or fall together. Fair between merchants: at most so many of each side given, whose time is given too;
-- none of a merchant that has been suspended since. The key is made of that of the subscription's first purchase, the
-- period and the number of its attempts. (A row that is new was locked by nobody, so its xmax is 0.)
-- What an approval reports comes with it, and the subscription as it stands, so that neither is read again; also whether
-- the acquirer's list had a purchase of this period that our books had forgotten.
with timed as (
    select side.*
      from unnest(:merchant_ids::bigint[], :lives::boolean[], :shop_nows::timestamptz[])
        as side (merchant_id, live, shop_now)
      join merchant m on m.id = side.merchant_id and not (side.live and m.suspended_at is not null)
), due as materialized (
    select s.*, timed.shop_now, nextval('payment_attempt_id_seq') as attempt_id
      from timed
     cross join lateral (
         select *
           from subscription s
          where s.merchant_id = timed.merchant_id and s.live = timed.live and s.date_next <= timed.shop_now
            and s.charging_attempt_id is null
            and coalesce(s.id = any(:only::bigint[]), true)
          order by s.date_next
          limit :per_side
            for update skip locked
     ) s
     limit :most
), held as (
    insert into payment as p (merchant_id, live, merchant_order_id, state, amount, currency, attempt_id, customer_id,
                              card_id, sign_version, key_id, pingback_url, created_at, subscription_id, period_number,
                              renewal)
    select due.merchant_id, due.live,
           due.init_merchant_order_id || ':' || due.next_period + (v.trial_length > 0)::integer,
           'processing', v.price, v.currency, due.attempt_id, due.customer_id, due.card_id, due.sign_version,
           due.key_id, due.pingback_url, due.shop_now, due.id, due.next_period, true
      from due
      join package_version v
        on v.merchant_id = due.merchant_id and v.live = due.live and v.id = due.package_version_id
        on conflict (merchant_id, live, subscription_id, period_number) where subscription_id is not null
        do update set state = 'processing', attempt_id = excluded.attempt_id, card_id = excluded.card_id
     where p.state = 'declined'
 returning p.*, p.xmax = 0 as is_first
), numbered as materialized (
    select held.*, case when is_first then 1 else next_attempt(merchant_id, live, id) end as number from held
), keyed as materialized (
    select n.*, derived_key(:pads::bytea, 'renewal ' || f.idempotency_key || ' ' || n.period_number || ' '
                                          || n.number) as idempotency_key, f.idempotency_key as of_key
      from numbered n
      join due on due.merchant_id = n.merchant_id and due.live = n.live and due.id = n.subscription_id
      join payment i on i.merchant_id = due.merchant_id and i.id = due.init_payment_id
      join payment_attempt f on f.merchant_id = i.merchant_id and f.id = i.attempt_id
), marked as (
    update subscription s
       set charging_attempt_id = held.attempt_id
      from held
     where s.merchant_id = held.merchant_id and s.live = held.live and s.id = held.subscription_id
), tried as (
    insert into payment_attempt (merchant_id, live, id, payment_id, state, idempotency_key, acquirer, capture, amount,
                                 currency, card_id, client_address, not_after, created_at, lookup_at,
                                 number)
    select held.merchant_id, held.live, held.attempt_id, held.id, 'processing', held.idempotency_key, due.acquirer, true, held.amount,
           held.currency, held.card_id, '', :not_after, due.shop_now, :lookup_at, held.number
      from keyed held
      join due on due.merchant_id = held.merchant_id and due.live = held.live and due.id = held.subscription_id
)
select held.attempt_id, held.id as payment_id, held.merchant_order_id, held.amount, held.subscription_id,
       held.period_number, held.renewal, held.idempotency_key, held.number,
       case when (select exists (select from alarm
                                  where merchant_id = 0 and live and kind = 'not_reconciled' and settled_at is null))
            then was_forgotten(:pads, due.acquirer, 'renewal ' || held.of_key || ' ' || held.period_number || ' ',
                               held.number, '')
            else false end as was_forgotten,
       m.key_tag, d.tag as deployment, d.epoch,
       due.merchant_id, due.live, due.shop_now, due.network_reference, due.acquirer, due.sign_version,
       due.pingback_url as form_url,
       due.id, due.state, due.init_payment_id, due.init_merchant_order_id, due.time_zone, due.anchor, due.next_period,
       due.date_next, due.date_start, due.created_at, due.failures, due.counter, due.paid_number_counter,
       due.date_active, due.date_paid, due.date_end, due.date_expired, due.date_cancelled, due.date_stopped,
       due.cancelled_by, due.revision, coalesce(due.skipped, 0) as skipped, due.shop_now as tried_at,
       m.charge_missed_until,
       t.package_version_id, t.package_id, t.sku_id, t.subscriptions_count, t.package_name, t.currency, t.price,
       t.period_length, t.period_unit, t.trial_price, t.trial_length, t.trial_unit, t.payment_limit,
       c.id as card_id, c.number_sealed, c.vault_key_id, c.exp_month, c.exp_year, c.holder, c.refused_as,
       u.first_name, u.last_name, u.username, u.country, u.email, f.rate, f.fixed, f.reserve_rate,
       m.pingback_url as account_url, m.test_pingback_url, m.went_live_at, m.pingback_format
  from keyed held
  join due on due.merchant_id = held.merchant_id and due.live = held.live and due.id = held.subscription_id
  join package_terms t
    on t.merchant_id = due.merchant_id and t.live = due.live and t.package_version_id = due.package_version_id
  join card c on c.merchant_id = due.merchant_id and c.live = due.live and c.id = due.card_id
  join customer u on u.merchant_id = due.merchant_id and u.live = due.live and u.id = due.customer_id
  join merchant m on m.id = due.merchant_id
  cross join deployment d
  cross join lateral fees_in(due.merchant_id, held.currency) f;

-- name: due_to_renew(merchant_ids, lives, shop_nows, most)
-- The subscriptions that are due, oldest first of each side.
select s.merchant_id, s.live, s.id
  from unnest(:merchant_ids::bigint[], :lives::boolean[], :shop_nows::timestamptz[])
    as side (merchant_id, live, shop_now)
 cross join lateral (
     select merchant_id, live, id
       from subscription
      where merchant_id = side.merchant_id and live = side.live and date_next <= side.shop_now
        and charging_attempt_id is null
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

-- name: failures_to_report(merchant_ids, lives, attempt_ids)
-- Renewal attempts that ended without money, with their subscriptions as they stand, and how often the acquirer refused
-- to charge this period before, or was not reached for it.
select w.*, a.id as attempt_id, a.card_id as attempt_card_id,
       (select count(*)
          from payment_attempt before
         where before.merchant_id = a.merchant_id and before.live = a.live and before.payment_id = a.payment_id
           and before.decline_reason = 'request_refused') as refusals,
       (select count(*)
          from payment_attempt before
         where before.merchant_id = a.merchant_id and before.live = a.live and before.payment_id = a.payment_id
           and before.id <> a.id
           and (before.state in ('failed', 'voiding', 'voided') or before.decline_reason = 'too_late')) as unreached,
       m.pingback_url as account_url, m.test_pingback_url,
       m.went_live_at, m.pingback_format
  from unnest(:merchant_ids::bigint[], :lives::boolean[], :attempt_ids::bigint[]) as asked (merchant_id, live, id)
  join payment_attempt a on a.merchant_id = asked.merchant_id and a.live = asked.live and a.id = asked.id
  join payment p on p.merchant_id = a.merchant_id and p.live = a.live and p.id = a.payment_id
  join subscription_whole w on w.merchant_id = p.merchant_id and w.live = p.live and w.id = p.subscription_id
  join merchant m on m.id = a.merchant_id;

-- name: record_failures(attempt_ids, attempt_states, reasons, lookup_ats, hard, subscriptions, pingback_urls, pingback_formats, payloads, now)
-- Renewals end without money: payment and attempt move, the subscription gets its next date or stops, and a stop is
-- told. The arrays and the versions are in one order; rows come back for those that moved. The number of a card that was
-- refused for good, or whose subscription stops, is erased: it is not put to the network again. (What the
-- guards hide in coalesce the planner can't guess: few rows are open at a time, and it would begin with those.)
with fresh as (
    select f.*
      from rows from (
          jsonb_to_recordset(:subscriptions::jsonb)
              as (merchant_id bigint, live boolean, id bigint, state text, failures integer, date_next timestamptz,
                  date_cancelled timestamptz, date_stopped timestamptz, cancelled_by text, revision integer),
          unnest(:attempt_ids::bigint[]), unnest(:attempt_states::text[]), unnest(:reasons::text[]),
          unnest(:lookup_ats::timestamptz[]), unnest(:hard::boolean[]), unnest(:pingback_urls::text[]),
          unnest(:pingback_formats::text[]), unnest(:payloads::text[])
      ) as f (merchant_id, live, id, state, failures, date_next, date_cancelled, date_stopped, cancelled_by, revision,
              attempt_id, attempt_state, reason, lookup_at, hard, send_to, pingback_format, payload)
), locked as materialized (
    select s.id, s.merchant_id, s.live
      from fresh f
      join subscription s on s.merchant_id = f.merchant_id and s.live = f.live and s.id = f.id
       and s.revision = f.revision - 1 and s.charging_attempt_id = f.attempt_id
     order by s.merchant_id, s.id
       for update of s
), refused as (
    update payment p
       set state = 'declined'
      from fresh f
      join locked l on l.merchant_id = f.merchant_id and l.live = f.live and l.id = f.id
      join payment_attempt a on a.merchant_id = f.merchant_id and a.live = f.live and a.id = f.attempt_id
     where p.merchant_id = f.merchant_id and p.live = f.live and p.id = a.payment_id and p.attempt_id = a.id
       and coalesce(p.state in ('processing', 'challenged'), false)
       and coalesce(a.state in ('processing', 'challenged'), false)
 returning f.*, p.id as payment_id, p.sign_version, p.key_id
), ended as (
    update payment_attempt a
       set state = r.attempt_state, decline_reason = r.reason, finished_at = :now, lookup_at = r.lookup_at,
           lookups = 0, leased_until = null
      from refused r
     where a.merchant_id = r.merchant_id and a.live = r.live and a.id = r.attempt_id
 returning a.merchant_id, a.live, a.card_id, r.hard, r.reason
), moved as (
    update subscription s
       set state = r.state, failures = r.failures, date_next = r.date_next, date_cancelled = r.date_cancelled,
           date_stopped = r.date_stopped, cancelled_by = r.cancelled_by, revision = r.revision,
           charging_attempt_id = null
      from refused r
     where s.merchant_id = r.merchant_id and s.live = r.live and s.id = r.id
 returning s.merchant_id, s.live, s.card_id, s.date_next
), card_forgotten as (
    update card c
       set number_sealed = null, erased_at = coalesce(c.erased_at, :now),
           refused_as = coalesce(over.refused_as, c.refused_as)
      from (select merchant_id, live, card_id, max(refused_as) as refused_as
              from (select merchant_id, live, card_id, reason as refused_as from ended where hard
                     union all
                    select merchant_id, live, card_id, null from moved where date_next is null) ends
             group by merchant_id, live, card_id) over
     where c.merchant_id = over.merchant_id and c.live = over.live and c.id = over.card_id
), told as (
    insert into pingback (merchant_id, live, event, subscription_id, url, sign_version, key_id, format, payload,
                          state, due_at, created_at)
    select r.merchant_id, r.live, 'subscription_stopped', r.id, r.send_to, r.sign_version, r.key_id,
           r.pingback_format, r.payload,
           case when 'subscription_stopped' = any(m.muted_events) then 'muted'
                when r.send_to is null then 'waiting' else 'due' end, :now, :now
      from refused r
      join merchant m on m.id = r.merchant_id
     where payload is not null
)
select attempt_id from refused;

-- name: due_to_expire(real_now, at, most, merchant_id, aside_since)
-- Subscriptions whose last period is over, each by its side's own time: what is over in real time is over on every side,
-- the rest is looked for only where a test clock runs ahead. What was set aside lately is left out.
with over as (
    (select s.merchant_id, s.live, s.id, s.date_end
       from subscription s
      where s.state = 'Active' and s.date_next is null and s.date_end <= :real_now::timestamptz
        and s.charging_attempt_id is null and :merchant_id::bigint is null
        and not exists (select
                          from alarm a
                         where a.merchant_id = s.merchant_id and a.live = s.live and a.kind = 'set_aside'
                           and a.subject = 'subscription ' || s.id and a.settled_at is null
                           and a.last_at > :aside_since)
      order by s.date_end
      limit :most)
     union
    (select s.merchant_id, s.live, s.id, s.date_end
       from merchant m
      cross join lateral (
          select *
            from subscription s
           where s.merchant_id = m.id and not s.live and s.state = 'Active' and s.date_next is null
             and s.date_end <= coalesce(:at::timestamptz, :real_now::timestamptz + m.test_clock)
             and s.charging_attempt_id is null
             and not exists (select
                               from alarm a
                              where a.merchant_id = s.merchant_id and a.live = s.live and a.kind = 'set_aside'
                                and a.subject = 'subscription ' || s.id and a.settled_at is null
                                and a.last_at > :aside_since)
           order by s.date_end
           limit :most
      ) s
     where case when :merchant_id::bigint is null then m.test_clock > interval '0' else m.id = :merchant_id end
     limit :most)
)
select w.*, coalesce(:at::timestamptz, :real_now::timestamptz + case when w.live then interval '0' else m.test_clock end)
       as shop_now,
       m.pingback_url as account_url, m.test_pingback_url, m.went_live_at, m.pingback_format, m.extra_events
  from over
  join merchant m on m.id = over.merchant_id
  join subscription_whole w on w.merchant_id = over.merchant_id and w.live = over.live and w.id = over.id
 order by over.date_end
 limit :most;

-- name: find_many(merchant_ids, lives, ids)
select w.*
  from unnest(:merchant_ids::bigint[], :lives::boolean[], :ids::bigint[]) as asked (merchant_id, live, id)
  join subscription_whole w on w.merchant_id = asked.merchant_id and w.live = asked.live and w.id = asked.id;

-- name: find_packages(merchant_ids, lives, version_ids)
select t.*
  from unnest(:merchant_ids::bigint[], :lives::boolean[], :version_ids::bigint[]) as asked (merchant_id, live, id)
  join package_terms t
    on t.merchant_id = asked.merchant_id and t.live = asked.live and t.package_version_id = asked.id;
