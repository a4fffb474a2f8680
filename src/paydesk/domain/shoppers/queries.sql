-- name: count(subject, most, until, now)$
-- One more, unless as many were before its time is over; null if so. Parallel ones wait for each other at the row.
insert into shopper_count as c (subject, times, until)
values (:subject, 1, :until)
    on conflict (subject) do update
   set times = case when c.until <= :now then 1 else c.times + 1 end,
       until = case when c.until <= :now then excluded.until else c.until end
 where c.until <= :now or c.times < :most
returning times;

-- name: end_codes(merchant_id, live, address, browser)!
-- A new code ends the one before of its address, and of its browser.
delete from shopper_code
 where merchant_id = :merchant_id and live = :live and (address = :address or browser = :browser);

-- name: begin_code(merchant_id, live, address, browser, email, code, expires_at)!
insert into shopper_code (merchant_id, live, address, browser, email, code, expires_at)
values (:merchant_id, :live, :address, :browser, :email, :code, :expires_at);

-- name: count_try(merchant_id, live, browser, most, now)^
-- A try is counted before it is judged; there is nothing to compare with once there were too many.
update shopper_code
   set tries = tries + 1
 where merchant_id = :merchant_id and live = :live and browser = :browser and expires_at > :now and tries < :most
returning email, code;

-- name: prove(merchant_id, live, browser, code, email, token, remembered, expires_at, now)$
-- The code is used up, the address is proved, and its browser has a session: once, whoever else sends the same.
with used as (
    delete from shopper_code
     where merchant_id = :merchant_id and live = :live and browser = :browser and code = :code
 returning merchant_id, live
), proved as (
    insert into shopper (merchant_id, live, email, proved_at)
    select merchant_id, live, :email, :now from used
        on conflict (merchant_id, live, lower(email)) where erased_at is null do update
       set proved_at = excluded.proved_at
 returning merchant_id, live, id
)
insert into shopper_session (merchant_id, live, shopper_id, token, rotated_at, remembered, created_at, expires_at)
select merchant_id, live, id, :token, :now, :remembered, :now, :expires_at from proved
returning id;

-- name: find_session(merchant_id, live, token, now)^
-- By the token of now, or by the one before.
select s.id, s.shopper_id, u.email, u.seed::text as seed, s.token = :token as is_current, s.rotated_at, s.remembered,
       s.expires_at
  from shopper_session s
  join shopper u on u.merchant_id = s.merchant_id and u.live = s.live and u.id = s.shopper_id and u.erased_at is null
 where s.merchant_id = :merchant_id and s.live = :live and s.expires_at > :now
   and (s.token = :token or s.previous = :token)
 limit 1;

-- name: rotate(merchant_id, live, id, token, fresh, now)$
-- Only who comes with the newest token gets another: of two at the same moment, one.
update shopper_session
   set previous = token, token = :fresh, rotated_at = :now
 where merchant_id = :merchant_id and live = :live and id = :id and token = :token
returning id;

-- name: end_session(merchant_id, live, id)!
delete from shopper_session where merchant_id = :merchant_id and live = :live and id = :id;

-- name: end_sessions(merchant_id, live, shopper_id)!
delete from shopper_session where merchant_id = :merchant_id and live = :live and shopper_id = :shopper_id;

-- name: forget_past(now)!
-- Codes, counts and sessions whose time is over.
with codes as (
    delete from shopper_code where expires_at <= :now
), counts as (
    delete from shopper_count where until <= :now
)
delete from shopper_session where expires_at <= :now;
