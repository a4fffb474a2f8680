-- name: begin_void(merchant_id, live, payment_id, pads, requested_by, request_key, drawn, lookup_at, now)^
-- The intent to let go of an authorization because the merchant asks for it; `drawn` if the key is ours.
with held as (
    update payment
       set moving_id = nextval('movement_id_seq')
     where merchant_id = :merchant_id and live = :live and id = :payment_id
       and state = 'authorized' and moving_id is null
 returning *
), begun as (
    insert into movement (merchant_id, live, id, payment_id, kind, state, amount, currency, idempotency_key, acquirer,
                          requested_by, request_key, created_at, lookup_at, unanswered_since)
    select h.merchant_id, h.live, h.moving_id, h.id, 'void', 'processing', h.amount, h.currency,
           movement_key(:pads, a.idempotency_key, h.merchant_id, h.live, h.id, 'void', :request_key), a.acquirer,
           :requested_by, :request_key::text, :now, :lookup_at,
           case when :drawn::boolean then clock_timestamp() end
      from held h
      join payment_attempt a on a.merchant_id = h.merchant_id and a.live = h.live and a.id = h.attempt_id
 returning *
)
select b.merchant_id, b.live, b.id, b.payment_id, b.kind, b.amount, b.currency, b.idempotency_key, b.acquirer,
       b.created_at, b.lookups, b.alerted_at, a.idempotency_key as of_key, a.acquirer_reference as reference,
       interval '0' as clock, null::timestamptz as paid_at
  from begun b
  join held h on h.merchant_id = b.merchant_id and h.id = b.payment_id
  join payment_attempt a on a.merchant_id = h.merchant_id and a.live = h.live and a.id = h.attempt_id;

-- name: begin_refund(merchant_id, live, payment_id, amount, seen, most_of_payment, most_of_day, pads, requested_by, request_key, drawn, lookup_at, now)^
-- The intent to give money back (null: all that is left). The payment's row keeps account of what refunds in progress
-- have reserved, so that however many race, no more is ever asked of the acquirer than was captured and is not charged
-- back; nor, where limits are given, than whoever asks may give back of a payment and in a day, both in units. The
-- day's row is what refunds of several payments wait for each other at. Under a key of ours (`drawn`) the payment must
-- have given back what was `seen` before: a first try that the database still has under way after its caller was sent
-- away changes nothing once the repeat has been made.
with asked as materialized (
    select p.merchant_id, p.live, p.id, p.state, p.amount, p.refunded, p.refunding, p.charged_back,
           coalesce(:amount::numeric, p.amount - p.refunded - p.refunding - greatest(p.charged_back, 0)) as asked,
           coalesce((select units from currency_unit u where u.currency = p.currency), 1) as units
      from payment p
     where p.merchant_id = :merchant_id and p.live = :live and p.id = :payment_id
       for update
), locked as materialized (
    select *
      from asked
     where state in ('captured', 'partially_refunded', 'charged_back')
       and asked > 0 and refunded + refunding + greatest(charged_back, 0) + asked <= amount
       and (not :drawn::boolean or refunded + refunding = :seen::numeric)
       and (:most_of_payment::numeric is null or refunded + refunding + asked <= :most_of_payment::numeric * units)
), counted as (
    insert into refund_day as d (merchant_id, live, requested_by, day, units)
    select merchant_id, live, :requested_by, (:now::timestamptz at time zone 'UTC')::date, asked / units
      from locked
     where asked / units <= :most_of_day::numeric
        on conflict (merchant_id, live, requested_by, day) do update
       set units = d.units + excluded.units
     where d.units + excluded.units <= :most_of_day::numeric
 returning units
), held as (
    update payment p
       set refunding = p.refunding + l.asked
      from locked l
     where p.merchant_id = l.merchant_id and p.live = l.live and p.id = l.id
       and (:most_of_day::numeric is null or exists (select from counted))
 returning p.*, l.asked
), begun as (
    insert into movement (merchant_id, live, id, payment_id, kind, state, amount, currency, idempotency_key, acquirer,
                          requested_by, request_key, created_at, lookup_at, unanswered_since, fees_returned)
    select h.merchant_id, h.live, fresh.id, h.id, 'refund', 'processing', h.asked, h.currency,
           movement_key(:pads, a.idempotency_key, h.merchant_id, h.live, h.id, 'refund', :request_key), a.acquirer,
           :requested_by, :request_key::text, :now, :lookup_at,
           case when :drawn::boolean then clock_timestamp() end,
           (select fees_returned from fee_plan where merchant_id = h.merchant_id)
      from held h
      join payment_attempt a on a.merchant_id = h.merchant_id and a.live = h.live and a.id = h.attempt_id
     cross join lateral (select nextval('movement_id_seq') as id) fresh
 returning *
)
select b.merchant_id, b.live, b.id, b.payment_id, b.kind, b.amount, b.currency, b.idempotency_key, b.acquirer,
       b.created_at, b.lookups, b.alerted_at, a.idempotency_key as of_key, a.acquirer_reference as reference,
       interval '0' as clock, h.paid_at
  from begun b
  join held h on h.merchant_id = b.merchant_id and h.id = b.payment_id
  join payment_attempt a on a.merchant_id = h.merchant_id and a.live = h.live and a.id = h.attempt_id;

-- name: correct_refund(merchant_id, live, id, amount)^
-- Under its key the acquirer has an older refund with another amount, which was forgotten: the row is that one. What it
-- reserves is what it gave back, if so much is left. A name that was drawn is free again for what was asked for now.
with held as (
    update payment p
       set refunding = p.refunding - m.amount + :amount::numeric
      from movement m
     where m.merchant_id = :merchant_id and m.live = :live and m.id = :id and m.kind = 'refund'
       and m.state = 'processing' and m.amount <> :amount::numeric
       and p.merchant_id = m.merchant_id and p.live = m.live and p.id = m.payment_id
       and p.refunded + p.refunding - m.amount + :amount::numeric + greatest(p.charged_back, 0) <= p.amount
 returning p.merchant_id, p.live, p.id
)
update movement m
   set amount = :amount, unanswered_since = null,
       request_key = case when m.request_key !~ '^drawn[ -][0-9a-f]{32}$' then m.request_key end
  from held
 where m.merchant_id = held.merchant_id and m.live = held.live and m.id = :id
returning m.id;

-- name: find_by_request(merchant_id, live, request_key)^
-- The movement that a caller's key has begun before.
select id, payment_id, kind, amount, unanswered_since
  from movement
 where merchant_id = :merchant_id and live = :live and request_key = :request_key;

-- name: find_intent(merchant_id, live, request_key)^
-- The movement that was begun under a key and is still to be carried out, as the statement that began it gave it back:
-- its answer was lost.
select m.merchant_id, m.live, m.id, m.payment_id, m.kind, m.amount, m.currency, m.idempotency_key, m.acquirer,
       m.created_at, m.lookups, m.alerted_at, a.idempotency_key as of_key, a.acquirer_reference as reference,
       interval '0' as clock, null::timestamptz as paid_at
  from movement m
  join payment p on p.merchant_id = m.merchant_id and p.live = m.live and p.id = m.payment_id
  join payment_attempt a on a.merchant_id = p.merchant_id and a.live = p.live and a.id = p.attempt_id
 where m.merchant_id = :merchant_id and m.live = :live and m.request_key = :request_key and m.state = 'processing';

-- name: movements_to_record(merchant_ids, lives, movement_ids)
-- What a movement changes and tells: it with its payment as it stands, customer, fee plan and where the merchant hears.
select r.*, m.id as movement_id, m.kind, m.amount as moved, coalesce(m.fees_returned, f.fees_returned) as fees_returned,
       (select coalesce(sum(x.amount), 0)
          from movement x
         where x.merchant_id = r.merchant_id and x.live = r.live and x.payment_id = r.payment_id and x.kind = 'refund'
           and x.state = 'done' and coalesce(x.fees_returned, r.fees_taken > 0)) as fees_returned_of,
       (select d.brand
          from payment p
          join card d on d.merchant_id = p.merchant_id and d.live = p.live and d.id = p.card_id
         where p.merchant_id = r.merchant_id and p.live = r.live and p.id = r.payment_id) as brand,
       s.settlement_days, now() + side_clock(m.live, s.test_clock) as shop_now
  from unnest(:merchant_ids::bigint[], :lives::boolean[], :movement_ids::bigint[]) as asked (merchant_id, live, id)
  join movement m on m.merchant_id = asked.merchant_id and m.live = asked.live and m.id = asked.id
  join reversible_payment r
    on r.merchant_id = m.merchant_id and r.live = m.live and r.payment_id = m.payment_id
  join merchant s on s.id = m.merchant_id
  join fee_plan f on f.merchant_id = m.merchant_id
 where m.state = 'processing';

-- name: record_movements(merchant_ids, lives, movement_ids, revisions, references, states, refunded, pending_taken, reserve_taken, fees_taken, funds_due_ats, events, send_to, pingback_formats, payloads, answered, posting_movements, posting_accounts, posting_amounts, now)
-- Money moved at the acquirer: payment and movement follow, the ledger gets its posting and the merchant the pingback,
-- or nothing does. Each was worked out from one revision of its payment; rows come back for those that still fit.
-- Payments are locked first, then movements, each in order, as in all that end one: who ends a movement sees how it stands
-- when the lock is had, and not when the statement began.
with outcome as (
    select *
      from unnest(:merchant_ids::bigint[], :lives::boolean[], :movement_ids::bigint[], :revisions::integer[],
                  :references::text[], :states::text[], :refunded::numeric[], :pending_taken::numeric[],
                  :reserve_taken::numeric[], :fees_taken::numeric[], :funds_due_ats::timestamptz[], :events::text[],
                  :send_to::text[], :pingback_formats::text[], :payloads::text[], :answered::boolean[])
        as o (merchant_id, live, movement_id, revision, reference, state, refunded, pending_taken, reserve_taken,
              fees_taken, funds_due_at, event, send_to, pingback_format, payload, answered)
), held as materialized (
    select p.merchant_id, p.live, p.id
      from (select distinct m.merchant_id, m.live, m.payment_id
              from outcome o
              join movement m on m.merchant_id = o.merchant_id and m.live = o.live and m.id = o.movement_id) named
      join payment p on p.merchant_id = named.merchant_id and p.live = named.live and p.id = named.payment_id
     order by p.merchant_id, p.id
       for update of p
), open as materialized (
    select m.*
      from held h
      join movement m on m.merchant_id = h.merchant_id and m.live = h.live and m.payment_id = h.id
      join outcome o on o.merchant_id = m.merchant_id and o.live = m.live and o.movement_id = m.id
     where coalesce(m.state = 'processing', false)
     order by m.merchant_id, m.id
       for update of m
), moved as (
    update payment p
       set state = o.state, rare_state = rare_state(o.state), revision = p.revision + 1,
           moving_id = case when m.kind = 'refund' then p.moving_id end,
           ship_by = case when m.kind = 'refund' then p.ship_by end,
           shipping_due_at = case when m.kind = 'refund' then p.shipping_due_at end,
           captured_at = case when m.kind = 'capture' then :now else p.captured_at end,
           funds_due_at = case when m.kind = 'capture' then o.funds_due_at else p.funds_due_at end,
           funds_look_at = case when m.kind = 'capture' then o.funds_due_at else p.funds_look_at end,
           refunded = p.refunded + o.refunded,
           refunding = p.refunding - case when m.kind = 'refund' then m.amount else 0 end,
           pending_taken = p.pending_taken + o.pending_taken,
           reserve_taken = p.reserve_taken + o.reserve_taken,
           fees_taken = p.fees_taken + o.fees_taken
      from outcome o
      join open m on m.merchant_id = o.merchant_id and m.live = o.live and m.id = o.movement_id
     where p.merchant_id = m.merchant_id and p.live = m.live and p.id = m.payment_id
       and p.revision = o.revision
       and (m.kind = 'refund' or p.moving_id = m.id)
 returning p.*, m.id as movement_id, m.kind, o.reference, o.event, o.send_to, o.pingback_format,
           o.payload, o.answered
), done as (
    update movement m
       set state = 'done', acquirer_reference = moved.reference, finished_at = :now, lookup_at = null,
           leased_until = null, muted = moved.event is null and moved.kind <> 'capture',
           unanswered_since = case when moved.answered then null else m.unanswered_since end
      from moved
     where m.merchant_id = moved.merchant_id and m.live = moved.live and m.id = moved.movement_id
), posting as materialized (
    select moved.*, nextval('ledger_posting_id_seq') as posting_id from moved where kind <> 'void'
), posted as (
    insert into ledger_posting (merchant_id, live, posting_id, kind, payment_id, currency, acquirer, pending, available,
                                reserve, fees, bank, at)
    select g.merchant_id, g.live, g.posting_id, g.kind, g.id, g.currency,
           coalesce(sum(e.amount) filter (where e.account = 'acquirer'), 0),
           coalesce(sum(e.amount) filter (where e.account = 'pending'), 0),
           coalesce(sum(e.amount) filter (where e.account = 'available'), 0),
           coalesce(sum(e.amount) filter (where e.account = 'reserve'), 0),
           coalesce(sum(e.amount) filter (where e.account = 'fees'), 0),
           coalesce(sum(e.amount) filter (where e.account = 'bank'), 0),
           posted_at(g.merchant_id, g.live, :now)
      from posting g
      join unnest(:posting_movements::bigint[], :posting_accounts::text[], :posting_amounts::numeric[])
        as e (movement_id, account, amount)
        on e.movement_id = g.movement_id
     where e.amount <> 0
     group by g.merchant_id, g.live, g.posting_id, g.kind, g.id, g.currency
), told as (
    insert into pingback (merchant_id, live, event, payment_id, reversal_id, url, sign_version, key_id, format, payload,
                          state, due_at, created_at)
    select merchant_id, live, event, id, movement_id, send_to, sign_version, key_id, pingback_format, payload,
           case when send_to is null then 'waiting' else 'due' end, :now, :now
      from moved
     where event is not null
)
select merchant_id, live, id as payment_id, movement_id from moved;

-- name: record_refusals(merchant_ids, lives, movement_ids, refusals, now)
-- The acquirer would not move anything: the payment is free for another try, and what a refund reserved is free again.
with outcome as (
    select *
      from unnest(:merchant_ids::bigint[], :lives::boolean[], :movement_ids::bigint[], :refusals::text[])
        as o (merchant_id, live, movement_id, refusal)
), held as materialized (
    select p.merchant_id, p.live, p.id
      from (select distinct m.merchant_id, m.live, m.payment_id
              from outcome o
              join movement m on m.merchant_id = o.merchant_id and m.live = o.live and m.id = o.movement_id) named
      join payment p on p.merchant_id = named.merchant_id and p.live = named.live and p.id = named.payment_id
     order by p.merchant_id, p.id
       for update of p
), open as materialized (
    select m.*
      from held h
      join movement m on m.merchant_id = h.merchant_id and m.live = h.live and m.payment_id = h.id
      join outcome o on o.merchant_id = m.merchant_id and o.live = m.live and o.movement_id = m.id
     where coalesce(m.state = 'processing', false)
     order by m.merchant_id, m.id
       for update of m
), refused as (
    update movement m
       set state = 'refused', refusal = o.refusal, finished_at = :now, lookup_at = null, leased_until = null
      from outcome o
      join open on open.merchant_id = o.merchant_id and open.live = o.live and open.id = o.movement_id
     where m.merchant_id = o.merchant_id and m.live = o.live and m.id = o.movement_id
 returning m.*
), freed as (
    update payment p
       set moving_id = case when r.authorization_moved then null else p.moving_id end,
           refunding = p.refunding - r.reserved
      from (
          select merchant_id, live, payment_id, bool_or(kind <> 'refund') as authorization_moved,
                 coalesce(sum(amount) filter (where kind = 'refund'), 0) as reserved
            from refused
           group by merchant_id, live, payment_id
      ) r
     where p.merchant_id = r.merchant_id and p.live = r.live and p.id = r.payment_id
)
select merchant_id, live, payment_id, id as movement_id from refused;

-- name: record_found_captures(merchant_ids, lives, movement_ids, references, amounts, refusal, now)
-- Authorizations were to be let go of, and the bank has captured them: each void is refused, its payment is free, and a
-- capture is recorded as what it is, with its posting. Of a part that was captured the rest is reserved for a refund that
-- the bank has made by letting go of it, and that is recorded as done within the same transaction.
with outcome as (
    select *
      from unnest(:merchant_ids::bigint[], :lives::boolean[], :movement_ids::bigint[], :references::text[],
                  :amounts::numeric[])
        as o (merchant_id, live, movement_id, reference, amount)
), held as materialized (
    select p.merchant_id, p.live, p.id
      from (select distinct m.merchant_id, m.live, m.payment_id
              from outcome o
              join movement m on m.merchant_id = o.merchant_id and m.live = o.live and m.id = o.movement_id) named
      join payment p on p.merchant_id = named.merchant_id and p.live = named.live and p.id = named.payment_id
     order by p.merchant_id, p.id
       for update of p
), open as materialized (
    select m.*
      from held h
      join movement m on m.merchant_id = h.merchant_id and m.live = h.live and m.payment_id = h.id
      join outcome o on o.merchant_id = m.merchant_id and o.live = m.live and o.movement_id = m.id
     where coalesce(m.state = 'processing', false)
     order by m.merchant_id, m.id
       for update of m
), refused as (
    update movement m
       set state = 'refused', refusal = :refusal, finished_at = :now, lookup_at = null, leased_until = null
      from open
     where m.merchant_id = open.merchant_id and m.live = open.live and m.id = open.id
 returning m.*
), taken as (
    update payment p
       set state = 'captured', rare_state = null, revision = p.revision + 1, moving_id = null, ship_by = null,
           shipping_due_at = null, captured_at = :now, refunding = p.refunding + p.amount - o.amount,
           funds_due_at = :now::timestamptz + make_interval(days => s.settlement_days),
           funds_look_at = :now::timestamptz + make_interval(days => s.settlement_days)
      from refused r
      join outcome o on o.merchant_id = r.merchant_id and o.live = r.live and o.movement_id = r.id
      join merchant s on s.id = r.merchant_id
     where p.merchant_id = r.merchant_id and p.live = r.live and p.id = r.payment_id
       and p.moving_id = r.id and p.state = 'authorized' and o.amount > 0 and o.amount <= p.amount
 returning p.*, r.id as movement_id, r.acquirer, r.created_at as begun_at, o.reference, p.amount - o.amount as rest
), freed as (
    update payment p
       set moving_id = null
      from refused r
      join outcome o on o.merchant_id = r.merchant_id and o.live = r.live and o.movement_id = r.id
     where p.merchant_id = r.merchant_id and p.live = r.live and p.id = r.payment_id
       and p.moving_id = r.id and (p.state <> 'authorized' or o.amount <= 0 or o.amount > p.amount)
), made as (
    insert into movement (merchant_id, live, payment_id, kind, state, amount, currency, idempotency_key, acquirer,
                          acquirer_reference, requested_by, created_at, finished_at)
    select merchant_id, live, id, 'capture', 'done', amount, currency, movement_id || '-captured-before', acquirer,
           reference, 'bank', begun_at, :now
      from taken
), released as (
    insert into movement (merchant_id, live, payment_id, kind, state, amount, currency, idempotency_key, acquirer,
                          requested_by, created_at, lookup_at, fees_returned)
    select merchant_id, live, id, 'refund', 'processing', rest, currency, movement_id || '-never-captured', acquirer,
           'bank', :now, :now, true
      from taken
     where rest > 0
 returning id, payment_id, amount
), posting as materialized (
    select taken.*, nextval('ledger_posting_id_seq') as posting_id from taken
), posted as (
    insert into ledger_posting (merchant_id, live, posting_id, kind, payment_id, currency, acquirer, pending, reserve,
                                fees, at)
    select merchant_id, live, posting_id, 'capture', id, currency, amount, -net, -reserve, -fees,
           posted_at(merchant_id, live, :now)
      from posting
     where amount <> 0
)
select r.id as movement_id, taken.id is not null as captured, released.id as released_id, released.amount as rest
  from refused r
  left join taken on taken.merchant_id = r.merchant_id and taken.live = r.live and taken.movement_id = r.id
  left join released on released.payment_id = taken.id;

-- name: movement_states(merchant_ids, lives, movement_ids)
select m.id, m.state
  from unnest(:merchant_ids::bigint[], :lives::boolean[], :movement_ids::bigint[]) as asked (merchant_id, live, id)
  join movement m on m.merchant_id = asked.merchant_id and m.live = asked.live and m.id = asked.id;

-- name: claim_movements(now, most, lease)
-- Movements whose fate the acquirer must be asked for, each taken by one janitor under a lease in database time; none that
-- is live in a copy for staging.
with due as materialized (
    select merchant_id, id
      from movement
     where lookup_at <= :now and (leased_until is null or leased_until < clock_timestamp())
       and not (live and (select copied_at is not null from deployment))
       and coalesce(merchant_id <> all (array(select merchant_id from merchant_fence)), true)
     order by lookup_at
     limit :most
       for update skip locked
)
update movement m
   set leased_until = clock_timestamp() + :lease::interval, lookups = m.lookups + 1
  from due
  join merchant s on s.id = due.merchant_id
  join movement same on same.merchant_id = due.merchant_id and same.id = due.id
  join payment p on p.merchant_id = same.merchant_id and p.live = same.live and p.id = same.payment_id
  join payment_attempt a on a.merchant_id = p.merchant_id and a.live = p.live and a.id = p.attempt_id
 where m.merchant_id = due.merchant_id and m.id = due.id
returning m.merchant_id, m.live, m.id, m.payment_id, m.kind, m.amount, m.currency, m.idempotency_key, m.acquirer,
          m.created_at, m.lookups, m.alerted_at, a.idempotency_key as of_key, a.acquirer_reference as reference,
          side_clock(m.live, s.test_clock) as clock, null::timestamptz as paid_at;

-- name: schedule_movements(merchant_ids, lives, movement_ids, lookup_ats, alerted_ats)!
-- Nothing was learnt: ask again later. Locked in the order in which movements end.
with outcome as (
    select *
      from unnest(:merchant_ids::bigint[], :lives::boolean[], :movement_ids::bigint[], :lookup_ats::timestamptz[],
                  :alerted_ats::timestamptz[])
        as o (merchant_id, live, movement_id, lookup_at, alerted_at)
), open as materialized (
    select m.merchant_id, m.id, o.lookup_at, o.alerted_at
      from outcome o
      join movement m on m.merchant_id = o.merchant_id and m.live = o.live and m.id = o.movement_id
     where m.state = 'processing'
     order by m.merchant_id, m.id
       for update of m
)
update movement m
   set lookup_at = open.lookup_at, leased_until = null, alerted_at = coalesce(m.alerted_at, open.alerted_at)
  from open
 where m.merchant_id = open.merchant_id and m.id = open.id;

-- name: movements_unknown(older_than)$
-- For the operator's gauge: movements whose outcome is still open. Their times are the shop's own.
select count(*)
  from movement m
  join merchant s on s.id = m.merchant_id
 where m.lookup_at is not null
   and m.created_at - side_clock(m.live, s.test_clock) < :older_than;
