-- name: find_difference(merchant_id, live, request_key, attempt_id)^
-- What became of a difference, by its caller's key or by its attempt.
select d.subscription_id, d.attempt_id, d.state, d.charged, d.package_version_id, d.period_number, d.began_at, d.ends_at,
       d.at, d.old_price, d.new_price, d.given_back, d.amount, d.anchor is not null as begins,
       a.payment_id, a.decline_reason
  from subscription_difference d
  join payment_attempt a on a.merchant_id = d.merchant_id and a.live = d.live and a.id = d.attempt_id
 where d.merchant_id = :merchant_id and d.live = :live
   and (d.request_key = :request_key::text or d.attempt_id = :attempt_id::bigint);

-- name: count_declined(merchant_id, live, subscription_id, since)$
-- How many differences of a subscription were declined that were begun since a moment.
select count(*)
  from subscription_difference
 where merchant_id = :merchant_id and live = :live and subscription_id = :subscription_id and state = 'declined'
   and at > :since;
