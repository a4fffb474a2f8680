-- name: by_time(merchant_id, live, payments, since, until, before_at, before_id, most, acknowledged)
-- One side's pingbacks, newest first: all of them, or only those of the usual state, of the usual event, or both.
select id, live, event, payment_id, url, sign_version, format, payload, state, attempts, due_at, created_at,
       finished_at, subscription_id
  from pingback
 where merchant_id = :merchant_id and live = :live
   and created_at >= :since and created_at < :until and (created_at, id) < (:before_at, :before_id)
   and (not :acknowledged::boolean or state = 'acknowledged') and (not :payments::boolean or event = 'payment')
 order by created_at desc, id desc
 limit :most;

-- name: of_event(merchant_id, live, event, since, until, before_at, before_id, most, acknowledged)
-- Those of one event that is not the usual one, in any state or in the usual one.
select id, live, event, payment_id, url, sign_version, format, payload, state, attempts, due_at, created_at,
       finished_at, subscription_id
  from pingback
 where merchant_id = :merchant_id and live = :live and event = :event and event <> 'payment'
   and created_at >= :since and created_at < :until and (created_at, id) < (:before_at, :before_id)
   and (not :acknowledged::boolean or state = 'acknowledged')
 order by created_at desc, id desc
 limit :most;

-- name: in_state(merchant_id, live, state, event, since, until, before_at, before_id, most)
-- Those of one state that is not the usual one. (With an event: of those that are being sent or are muted, which are few.)
select id, live, event, payment_id, url, sign_version, format, payload, state, attempts, due_at, created_at,
       finished_at, subscription_id
  from pingback
 where merchant_id = :merchant_id and live = :live and state = :state and state <> 'acknowledged'
   and created_at >= :since and created_at < :until and (created_at, id) < (:before_at, :before_id)
   and (:event::text is null or event = :event)
 order by created_at desc, id desc
 limit :most;

-- name: failed_of_event(merchant_id, live, state, event, since, until, before_at, before_id, most)
-- Those of one event that failed for good, or wait for a URL.
select id, live, event, payment_id, url, sign_version, format, payload, state, attempts, due_at, created_at,
       finished_at, subscription_id
  from pingback
 where merchant_id = :merchant_id and live = :live and state = :state and state in ('waiting', 'exhausted')
   and event = :event
   and created_at >= :since and created_at < :until and (created_at, id) < (:before_at, :before_id)
 order by created_at desc, id desc
 limit :most;

-- name: about(merchant_id, live, reference, email, event, state, since, until, before_at, before_id, most)
-- Those about the payments of an order reference, of an e-mail address, or (both given) of both.
select id, live, event, payment_id, url, sign_version, format, payload, state, attempts, due_at, created_at,
       finished_at, subscription_id
  from pingback
 where merchant_id = :merchant_id and live = :live
   and id = any(array(
       select pingbacks_about(:merchant_id, :live, array(
           select * from payments_of_reference(:merchant_id, :live, :reference) where :email::text is null
            union all
           select * from payments_of_email(:merchant_id, :live, lower(:email::text)) where :reference::text is null
            union all
          (select * from payments_of_reference(:merchant_id, :live, :reference)
            intersect
           select * from payments_of_email(:merchant_id, :live, lower(:email::text)))))))
   and (:state::text is null or state = :state) and (:event::text is null or event = :event)
   and created_at >= :since and created_at < :until and (created_at, id) < (:before_at, :before_id)
 order by created_at desc, id desc
 limit :most;

-- name: find(merchant_id, live, id)^
select id, live, event, payment_id, url, sign_version, format, payload, state, attempts, due_at, created_at,
       finished_at, subscription_id
  from pingback
 where merchant_id = :merchant_id and live = :live and id = :id;

-- name: last_attempts(merchant_id, live, ids)
-- The newest attempt of each of a page's pingbacks, as far as it tells why that failed.
select last.pingback_id, last.status, last.error, last.response_body
  from unnest(:ids::bigint[]) as wanted (id)
 cross join lateral (
     select pingback_id, status, error, left(response_body, 200) as response_body
       from pingback_attempt
      where merchant_id = :merchant_id and live = :live and pingback_id = wanted.id
      order by number desc, at desc
      limit 1
 ) last;
