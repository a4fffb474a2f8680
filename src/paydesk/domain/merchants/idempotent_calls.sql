-- name: begin_call(merchant_id, live, request_key, request_digest, real_now, kept_since, lease)$
-- The first call with a key gets through, and so does the next one of the same kind after a process died over the
-- first: its lease ran out. What is older than answers are kept counts as never asked.
insert into api_call as c (merchant_id, live, request_key, request_digest, created_at, leased_until)
values (:merchant_id, :live, :request_key, :request_digest, :real_now, clock_timestamp() + :lease::interval)
    on conflict (merchant_id, live, request_key) do update
   set request_digest = excluded.request_digest, created_at = excluded.created_at,
       leased_until = excluded.leased_until, status = null, answer = null
 where c.created_at < :kept_since
    or (c.status is null and c.leased_until < clock_timestamp() and c.request_digest = excluded.request_digest)
returning true;

-- name: find_call(merchant_id, live, request_key)^
select request_digest, status, answer
  from api_call
 where merchant_id = :merchant_id and live = :live and request_key = :request_key;

-- name: hold_call(merchant_id, live, request_key, lease)!
-- Whoever works on it is alive.
update api_call
   set leased_until = clock_timestamp() + :lease::interval
 where merchant_id = :merchant_id and live = :live and request_key = :request_key and status is null;

-- name: keep_answer(merchant_id, live, request_key, request_digest, status, answer)!
-- The first answer stands.
update api_call
   set status = :status, answer = :answer, leased_until = null
 where merchant_id = :merchant_id and live = :live and request_key = :request_key
   and request_digest = :request_digest and status is null;

-- name: give_up_call(merchant_id, live, request_key, request_digest)!
-- No answer worth keeping: the same call may be made again at once.
delete from api_call
 where merchant_id = :merchant_id and live = :live and request_key = :request_key
   and request_digest = :request_digest and status is null;

-- name: forget_calls(before, most)!
-- Served by the index by time.
delete from api_call
 where (merchant_id, live, request_key) in (
     select merchant_id, live, request_key from api_call where created_at < :before order by created_at limit :most);
