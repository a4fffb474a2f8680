-- name: find_order(merchant_id, live, payment_id, reference, digest)
-- The order that a confirmation is about, by the payment's id or (null) by the shop's reference, how its money stands,
-- and the confirmation itself if it came before. A reference may also be that of a renewal, so there may be two.
select p.id as payment_id, p.merchant_order_id, p.state, p.amount, p.currency, p.ship_by, a.capture as taken_at_once,
       m.kind as moving, c.parameters ->> 'quantity' as quantity, d.id as delivery_id, d.created_at as delivered_at
  from payment p
  join payment_attempt a on a.merchant_id = p.merchant_id and a.live = p.live and a.id = p.attempt_id
  left join checkout c on c.merchant_id = p.merchant_id and c.live = p.live and c.id = p.checkout_id
  left join movement m on m.merchant_id = p.merchant_id and m.live = p.live and m.id = p.moving_id
  left join delivery d
    on d.merchant_id = p.merchant_id and d.live = p.live and d.payment_id = p.id and d.digest = :digest
 where p.merchant_id = :merchant_id and p.live = :live
   and p.id = any(case when :payment_id::bigint is not null then array[:payment_id::bigint]
                       else array(select payments_of_reference(:merchant_id, :live, :reference::text))
                  end)
 order by p.id;

-- name: record_delivery(merchant_id, live, payment_id, takes_money, status, type, carrier, tracking_id, tracking_url, refundable, notify_user, product_description, details, reason, estimated_at, attachments, shipping_address, digest, pads, request_key, lookup_at, now)^
-- One more line of an order's timeline, and if it takes the money of an authorization, the intent to capture it: of a
-- capture and a void one gets through, and only before ship_by. What comes too late for that is not written either, nor
-- is the same confirmation a second time.
with held as (
    update payment
       set moving_id = nextval('movement_id_seq')
     where merchant_id = :merchant_id and live = :live and id = :payment_id and :takes_money
       and state = 'authorized' and moving_id is null and ship_by > :now
 returning *
), noted as (
    insert into delivery (merchant_id, live, payment_id, status, type, carrier, tracking_id, tracking_url, refundable,
                          notify_user, product_description, details, reason, estimated_at, attachments,
                          shipping_address, digest, created_at)
    select p.merchant_id, p.live, p.id, :status, :type, :carrier, :tracking_id, :tracking_url, :refundable,
           :notify_user, :product_description, :details, :reason, :estimated_at, :attachments, :shipping_address,
           :digest, :now
      from payment p
      left join movement m on m.merchant_id = p.merchant_id and m.live = p.live and m.id = p.moving_id
     where p.merchant_id = :merchant_id and p.live = :live and p.id = :payment_id
       and (p.state in ('captured', 'partially_refunded', 'refunded', 'charged_back')
            or p.state = 'authorized' and (not :takes_money or m.kind = 'capture' or exists (select from held)))
        on conflict (merchant_id, live, payment_id, digest) do nothing
 returning id
), begun as (
    insert into movement (merchant_id, live, id, payment_id, kind, state, amount, currency, idempotency_key, acquirer,
                          requested_by, request_key, created_at, lookup_at)
    select h.merchant_id, h.live, h.moving_id, h.id, 'capture', 'processing', h.amount, h.currency,
           movement_key(:pads, a.idempotency_key, h.merchant_id, h.live, h.id, 'capture', :request_key), a.acquirer,
           'delivery', :request_key, :now, :lookup_at
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

-- name: deliveries_of(merchant_id, live, payment_id, most)
-- An order's timeline, first to last.
select id, status, type, carrier, tracking_id, tracking_url, refundable, notify_user, product_description, details,
       reason, estimated_at, attachments, shipping_address, created_at
  from delivery
 where merchant_id = :merchant_id and live = :live and payment_id = :payment_id
 order by id
 limit :most;

-- name: sides_waiting(real_now)
-- The sides (merchant and mode) on which an order waits too long to be shipped, each with its own time: a test side's runs
-- ahead by its clock; a copy's live side never has any. One index probe finds each next side.
with recursive side as (
    (select merchant_id, live
       from payment
      where shipping_due_at is not null
      order by merchant_id, live
      limit 1)
     union all
    (select next.merchant_id, next.live
       from side
      cross join lateral (
          select p.merchant_id, p.live
            from payment p
           where p.shipping_due_at is not null and (p.merchant_id, p.live) > (side.merchant_id, side.live)
           order by p.merchant_id, p.live
           limit 1
      ) next)
), timed as (
    select side.merchant_id, side.live,
           :real_now::timestamptz + side_clock(side.live, m.test_clock) as shop_now
      from side
      join merchant m on m.id = side.merchant_id
)
select *
  from timed
 where not (live and (select copied_at is not null from deployment))
   and coalesce(merchant_id <> all (array(select merchant_id from merchant_fence)), true)
   and exists (select
                 from payment p
                where p.merchant_id = timed.merchant_id and p.live = timed.live
                  and p.shipping_due_at <= timed.shop_now);

-- name: remind(merchant_ids, lives, shop_nows, most, reminded_before, real_now, only)
-- Merchants are told once of each order that will be voided soon; the worker looks at it again when its time is up. (A
-- reminder that would come too late is left out.) Of one that is held for a shorter time than others they are told at
-- once, too, and it is looked at again for the reminder.
with side as (
    select *
      from unnest(:merchant_ids::bigint[], :lives::boolean[], :shop_nows::timestamptz[])
        as side (merchant_id, live, shop_now)
     where coalesce(side.merchant_id <> all (array(select merchant_id from merchant_fence)), true)
), due as materialized (
    select p.*, side.shop_now
      from side
     cross join lateral (
         select merchant_id, live, id,
                greatest(shipping_due_at, side.shop_now) < ship_by - :reminded_before::interval as sooner
           from payment
          where merchant_id = side.merchant_id and live = side.live and shipping_due_at <= side.shop_now
            and shipping_due_at < ship_by and (:only::bigint[] is null or id = any(:only))
          order by shipping_due_at
          limit :most
            for update skip locked
     ) p
     limit :most
), looked_at as (
    update payment p
       set shipping_due_at = p.ship_by - case when due.sooner then :reminded_before::interval else interval '0' end
      from due
     where p.merchant_id = due.merchant_id and p.live = due.live and p.id = due.id
 returning p.*, due.shop_now, due.sooner
)
insert into mail (merchant_id, live, kind, recipient, language, facts, once, due_at, created_at)
select p.merchant_id, p.live, 'void_reminder', m.email, 'en',
       jsonb_build_object('merchant_id', p.merchant_id, 'payment_id', p.id, 'merchant_order_id', p.merchant_order_id,
                          'amount', trim_scale(p.amount)::text, 'currency', p.currency,
                          'ship_by', to_char(p.ship_by at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'))
       || case when p.sooner then jsonb_build_object('sooner', true) else '{}' end,
       case when p.sooner then 'ship_sooner ' else 'void_reminder ' end || p.id, :real_now, :real_now
  from looked_at p
  join merchant m on m.id = p.merchant_id
 where p.ship_by > p.shop_now
    on conflict (merchant_id, once) do nothing
returning id;

-- name: begin_due_voids(merchant_ids, lives, shop_nows, most, pads, lookup_at, real_now, only)
-- Authorizations that nobody shipped in time: the intent to let go of each, unless a capture is in progress. One that the
-- acquirer refuses to void is looked at again an hour later. (What the guard hides in coalesce the planner can't
-- guess, so the index by time leads. And it takes few rows of ours for one: what was begun finds its payment by key, since
-- it would be compared with every row of `held`.)
with side as (
    select *
      from unnest(:merchant_ids::bigint[], :lives::boolean[], :shop_nows::timestamptz[])
        as side (merchant_id, live, shop_now)
     where coalesce(side.merchant_id <> all (array(select merchant_id from merchant_fence)), true)
), due as materialized (
    select p.*, side.shop_now
      from side
     cross join lateral (
         select merchant_id, live, id
           from payment
          where merchant_id = side.merchant_id and live = side.live and shipping_due_at <= side.shop_now
            and ship_by <= side.shop_now and moving_id is null and coalesce(state = 'authorized', false)
            and (:only::bigint[] is null or id = any(:only))
          order by shipping_due_at
          limit :most
            for update skip locked
     ) p
     limit :most
), held as (
    update payment p
       set moving_id = nextval('movement_id_seq'), shipping_due_at = due.shop_now + interval '1 hour'
      from due
     where p.merchant_id = due.merchant_id and p.live = due.live and p.id = due.id
 returning p.*, due.shop_now
), begun as (
    insert into movement (merchant_id, live, id, payment_id, kind, state, amount, currency, idempotency_key, acquirer,
                          requested_by, created_at, lookup_at)
    select h.merchant_id, h.live, h.moving_id, h.id, 'void', 'processing', h.amount, h.currency,
           movement_key(:pads, a.idempotency_key, h.merchant_id, h.live, h.id, 'void', null), a.acquirer,
           'deadline', h.shop_now, :lookup_at
      from held h
      join payment_attempt a on a.merchant_id = h.merchant_id and a.live = h.live and a.id = h.attempt_id
 returning *
)
select b.merchant_id, b.live, b.id, b.payment_id, b.kind, b.amount, b.currency, b.idempotency_key, b.acquirer,
       b.created_at, b.lookups, b.alerted_at, a.idempotency_key as of_key, a.acquirer_reference as reference,
       b.created_at - :real_now::timestamptz as clock, null::timestamptz as paid_at
  from begun b
  join payment p on p.merchant_id = b.merchant_id and p.live = b.live and p.id = b.payment_id
  join payment_attempt a on a.merchant_id = p.merchant_id and a.live = p.live and a.id = p.attempt_id;

-- name: due_of_shipping(merchant_ids, lives, shop_nows, most)
-- The authorized orders whose reminder or void is due.
select p.merchant_id, p.live, p.id
  from unnest(:merchant_ids::bigint[], :lives::boolean[], :shop_nows::timestamptz[])
    as side (merchant_id, live, shop_now)
 cross join lateral (
     select merchant_id, live, id
       from payment
      where merchant_id = side.merchant_id and live = side.live and shipping_due_at <= side.shop_now
      order by shipping_due_at
      limit :most
 ) p
 limit :most;

-- name: postpone(merchant_ids, lives, ids, real_now, pause)!
-- What could not be acted on is looked at again later, by its side's own time.
update payment p
   set shipping_due_at = greatest(p.shipping_due_at,
                                  :real_now::timestamptz + side_clock(p.live, m.test_clock))
                       + :pause::interval
  from unnest(:merchant_ids::bigint[], :lives::boolean[], :ids::bigint[]) as r (merchant_id, live, id)
  join merchant m on m.id = r.merchant_id
 where p.merchant_id = r.merchant_id and p.live = r.live and p.id = r.id and p.shipping_due_at is not null;
