-- name: agree_package(merchant_id, live, sku_id, name, currency, price, period_length, period_unit, trial_price, trial_length, trial_unit, payment_limit, quantity, now)$
-- The version of a package with exactly these terms: other terms under the same SKU are another version.
with known as (
    select v.id
      from subscription_package k
      join package_version v on v.merchant_id = k.merchant_id and v.live = k.live and v.package_id = k.id
     where k.merchant_id = :merchant_id and k.live = :live and k.sku_id = :sku_id
       and v.name = quantity_name(:name, :quantity) and v.currency = :currency and v.price = :price
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
                                 trial_price, trial_length, trial_unit, payment_limit, created_at, list_name, quantity,
                                 unit_price)
    select :merchant_id, :live, package.id, quantity_name(:name, :quantity), :currency, :price, :period_length, :period_unit,
           :trial_price, :trial_length, :trial_unit, :payment_limit, :now,
           case when :quantity > 1 then :name end, :quantity, case when :quantity > 1 then :price::numeric / :quantity end
      from package
        on conflict (merchant_id, live, package_id, price, currency, period_length, period_unit, trial_price,
                     trial_length, trial_unit, payment_limit, name)
        do update set name = excluded.name
 returning id
)
select id from known union all select id from fresh;

-- name: find_version(merchant_id, live, sku_id, name, currency, price, period_length, period_unit, trial_price, trial_length, trial_unit, payment_limit, quantity)^
-- The version of a package with exactly these terms, if there is one; none that a coupon has made.
select *
  from package_terms
 where list_price is null and merchant_id = :merchant_id and live = :live and sku_id = :sku_id
   and package_name = :name and currency = :currency and price = :price
   and period_length = :period_length and period_unit = :period_unit
   and trial_price = :trial_price and trial_length = :trial_length and trial_unit = :trial_unit
   and payment_limit = :payment_limit and quantity = :quantity;

-- name: find_package_id(merchant_id, live, sku_id)$
-- The package of a SKU, if there is one.
select id from subscription_package where merchant_id = :merchant_id and live = :live and sku_id = :sku_id;

-- name: find_sku(merchant_id, live, id)$
-- What the shop calls a package.
select sku_id from subscription_package where merchant_id = :merchant_id and live = :live and id = :id;

-- name: find_offered(merchant_id, live, currency, most)
-- What customers may change to on their page, the cheapest first.
select t.*
  from package_version v
  join package_terms t on t.merchant_id = v.merchant_id and t.live = v.live and t.package_version_id = v.id
 where v.merchant_id = :merchant_id and v.live = :live and v.currency = :currency and v.portal_offered
 order by v.price, v.id
 limit :most;

-- name: offer(merchant_id, live, package_id, id, offered, most)^
-- Offers a version on customers' pages, or not any more; `count` is how many of its currency are offered then. Nothing
-- becomes of one that would be one too many.
with wanted as (
    select v.merchant_id, v.live, v.id, v.currency,
           (select count(*)
              from package_version o
             where o.merchant_id = v.merchant_id and o.live = v.live and o.currency = v.currency and o.portal_offered
               and o.id <> v.id) as others
      from package_version v
     where v.merchant_id = :merchant_id and v.live = :live and v.package_id = :package_id and v.id = :id
       and v.list_version_id is null
), changed as (
    update package_version v
       set portal_offered = :offered
      from wanted w
     where v.merchant_id = w.merchant_id and v.id = w.id and (not :offered or w.others < :most)
)
select w.currency, w.others + 1 as count from wanted w;

-- name: find(merchant_id, live, id)^
select * from subscription_tried where merchant_id = :merchant_id and live = :live and id = :id;

-- name: end_subscription(subscriptions, event, payload, send_to, pingback_format, now)$
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
    select s.merchant_id, s.live, :event, s.id, :send_to::text, s.sign_version, s.key_id, :pingback_format,
           :payload,
           case when :event::text = any(m.muted_events) then 'muted'
                when :send_to::text is null then 'waiting' else 'due' end, :now, :now
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
select pingback_url as account_url, test_pingback_url, went_live_at, pingback_format, extra_events, time_zone, test_clock
  from merchant
 where id = :merchant_id;

-- name: failures_to_report(merchant_ids, lives, attempt_ids)
-- Renewal attempts that ended without money, with their subscriptions as they stand, and how often the acquirer refused
-- to charge this period before, or was not reached for it; by which plan it is tried again, and that of the account.
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
       s.dunning, m.dunning_hours, m.dunning_by_reason, m.dunning_end,
       m.pingback_url as account_url, m.test_pingback_url,
       m.went_live_at, m.pingback_format
  from unnest(:merchant_ids::bigint[], :lives::boolean[], :attempt_ids::bigint[]) as asked (merchant_id, live, id)
  join payment_attempt a on a.merchant_id = asked.merchant_id and a.live = asked.live and a.id = asked.id
  join payment p on p.merchant_id = a.merchant_id and p.live = a.live and p.id = a.payment_id
  join subscription_planned w on w.merchant_id = p.merchant_id and w.live = p.live and w.id = p.subscription_id
  join subscription s on s.merchant_id = w.merchant_id and s.live = w.live and s.id = w.id
  join merchant m on m.id = a.merchant_id;

-- name: record_failures(attempt_ids, attempt_states, reasons, lookup_ats, hard, subscriptions, paused_since, events, send_to, pingback_formats, payloads, now)
-- Renewals end without money: payment and attempt move, the subscription gets its next date, stops, or is paused, and
-- that is told. The arrays and the versions are in one order; rows come back for those that moved. The number of a card that was
-- refused for good, or whose subscription stops, is erased: it is not put to the network again. (What the
-- guards hide in coalesce the planner can't guess: few rows are open at a time, and it would begin with those.)
with fresh as (
    select f.*
      from rows from (
          jsonb_to_recordset(:subscriptions::jsonb)
              as (merchant_id bigint, live boolean, id bigint, state text, failures integer, date_next timestamptz,
                  date_cancelled timestamptz, date_stopped timestamptz, cancelled_by text, revision integer,
                  dunning jsonb),
          unnest(:attempt_ids::bigint[]), unnest(:attempt_states::text[]), unnest(:reasons::text[]),
          unnest(:lookup_ats::timestamptz[]), unnest(:hard::boolean[]), unnest(:paused_since::timestamptz[]),
          unnest(:events::text[]), unnest(:send_to::text[]), unnest(:pingback_formats::text[]), unnest(:payloads::text[])
      ) as f (merchant_id, live, id, state, failures, date_next, date_cancelled, date_stopped, cancelled_by, revision,
              dunning, attempt_id, attempt_state, reason, lookup_at, hard, paused_since, event, send_to,
              pingback_format, payload)
), locked as materialized (
    select s.id, s.merchant_id, s.live
      from fresh f
      join subscription s on s.merchant_id = f.merchant_id and s.live = f.live and s.id = f.id
       and s.revision = f.revision - 1 and s.charging_attempt_id = f.attempt_id
     order by s.merchant_id, s.id
       for update of s
), refused as (
    update payment p
       set state = 'declined', rare_state = 'declined', funds_look_at = null
      from fresh f
      join locked l on l.merchant_id = f.merchant_id and l.live = f.live and l.id = f.id
      join payment_attempt a on a.merchant_id = f.merchant_id and a.live = f.live and a.id = f.attempt_id
     where p.merchant_id = f.merchant_id and p.live = f.live and p.id = a.payment_id and p.attempt_id = a.id
       and coalesce(p.state in ('processing', 'challenged', 'pending'), false)
       and coalesce(a.state in ('processing', 'challenged', 'pending'), false)
 returning f.*, p.id as payment_id, p.sign_version, p.key_id
), pausing as materialized (
    select merchant_id, live, id, nextval('subscription_change_id_seq') as change_id
      from refused
     where paused_since is not null
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
           dunning = case when r.failures > s.failures then r.dunning else s.dunning end, charging_attempt_id = null,
           change_id = coalesce(p.change_id, s.change_id)
      from refused r
      left join pausing p on p.merchant_id = r.merchant_id and p.live = r.live and p.id = r.id
     where s.merchant_id = r.merchant_id and s.live = r.live and s.id = r.id
 returning s.merchant_id, s.live, s.card_id, s.state
), card_forgotten as (
    update card c
       set number_sealed = null, erased_at = coalesce(c.erased_at, :now),
           refused_as = coalesce(over.refused_as, c.refused_as)
      from (select merchant_id, live, card_id, max(refused_as) as refused_as
              from (select merchant_id, live, card_id, reason as refused_as from ended where hard
                     union all
                    select merchant_id, live, card_id, null from moved where state not in ('Trial', 'Active')) ends
             group by merchant_id, live, card_id) over
     where c.merchant_id = over.merchant_id and c.live = over.live and c.id = over.card_id
), paused as (
    insert into subscription_change (merchant_id, live, id, subscription_id, type, asked_by, since, created_at)
    select r.merchant_id, r.live, p.change_id, r.id, 'resume', 'retries', r.paused_since, :now
      from refused r
      join pausing p on p.merchant_id = r.merchant_id and p.live = r.live and p.id = r.id
), told as (
    insert into pingback (merchant_id, live, event, subscription_id, url, sign_version, key_id, format, payload,
                          state, due_at, created_at)
    select r.merchant_id, r.live, r.event, r.id, r.send_to, r.sign_version, r.key_id,
           r.pingback_format, r.payload,
           case when r.event = any(m.muted_events) then 'muted'
                when r.send_to is null then 'waiting' else 'due' end, :now, :now
      from refused r
      join merchant m on m.id = r.merchant_id
     where payload is not null
)
select attempt_id from refused;

-- name: due_to_expire(real_now, at, most, merchant_id, aside_since)
-- Subscriptions whose last period is over, each by its side's own time: what is over in real time is over on every side,
-- the rest is looked for only where a test clock runs ahead. What was set aside lately is left out. (Each is read by
-- itself, so that finding nothing is planned in two milliseconds and not in fifty, after each `analyze` of a table.)
with over as (
    (select s.merchant_id, s.live, s.id, s.date_end
       from subscription s
      where s.state = 'Active' and s.date_next is null and s.date_end <= :real_now::timestamptz
        and s.charging_attempt_id is null and :merchant_id::bigint is null
        and coalesce(s.merchant_id <> all (array(select merchant_id from merchant_fence)), true)
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
             and s.date_end <= coalesce(:at::timestamptz, :real_now::timestamptz + side_clock(false, m.test_clock))
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
       and coalesce(m.id <> all (array(select merchant_id from merchant_fence)), true)
     limit :most)
)
select w.*, coalesce(:at::timestamptz, :real_now::timestamptz + side_clock(w.live, m.test_clock)) as shop_now,
       m.pingback_url as account_url, m.test_pingback_url, m.went_live_at, m.pingback_format, m.extra_events
  from over
  join merchant m on m.id = over.merchant_id
 cross join lateral (
     select *
       from subscription_planned w
      where w.merchant_id = over.merchant_id and w.live = over.live and w.id = over.id
     offset 0
 ) w
 order by over.date_end
 limit :most;

-- name: find_many(merchant_ids, lives, ids)
select w.*
  from unnest(:merchant_ids::bigint[], :lives::boolean[], :ids::bigint[]) as asked (merchant_id, live, id)
  join subscription_planned w on w.merchant_id = asked.merchant_id and w.live = asked.live and w.id = asked.id;

-- name: find_packages(merchant_ids, lives, version_ids)
select t.*
  from unnest(:merchant_ids::bigint[], :lives::boolean[], :version_ids::bigint[]) as asked (merchant_id, live, id)
  join package_terms t
    on t.merchant_id = asked.merchant_id and t.live = asked.live and t.package_version_id = asked.id;
