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
