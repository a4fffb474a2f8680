-- name: find(merchant_id)^
select pingback_url, test_pingback_url, pingback_format, sign_version, extra_events, muted_events
  from merchant
 where id = :merchant_id;

-- name: save(merchant_id, pingback_url, test_pingback_url, pingback_format, sign_version, extra_events, muted_events)!
update merchant
   set pingback_url = :pingback_url,
       test_pingback_url = :test_pingback_url,
       pingback_format = :pingback_format,
       sign_version = :sign_version,
       extra_events = :extra_events,
       muted_events = :muted_events
 where id = :merchant_id;

-- name: newest_sign_version(merchant_id, live)$
-- What the shop's programs really sign with: the version of its newest payment on this side.
select sign_version
  from payment
 where merchant_id = :merchant_id and live = :live
 order by created_at desc
 limit 1;

-- name: public_keys(merchant_id, most)
-- Newest first, with those that have ended; nothing of a private key.
select id, public_key, created_at, valid_until, scopes, moves_live
  from merchant_key
 where merchant_id = :merchant_id
 order by id desc
 limit :most;

-- name: end_key(merchant_id, id, now)$
-- Only one that was replaced: what takes its place is valid. Of several that end it at once, one gets the row.
update merchant_key
   set valid_until = :now
 where merchant_id = :merchant_id and id = :id and valid_until > :now
returning public_key;
