-- name: read_clock(merchant_id)^
select test_clock as ahead, time_zone, coalesce(clock_held_until > clock_timestamp(), false) as held
  from merchant
 where id = :merchant_id;

-- name: hold_clock(merchant_id, holder, lease)^
-- One at a time moves a clock; whoever died leaves a lease in database time that runs out.
update merchant
   set clock_holder = :holder, clock_held_until = clock_timestamp() + :lease::interval
 where id = :merchant_id
   and (clock_holder in ('', :holder) or clock_held_until is null or clock_held_until <= clock_timestamp())
returning test_clock as ahead, time_zone;

-- name: move_clock(merchant_id, holder, at, real_now, lease)$
-- The test side's time becomes :at, unless it is later already: it never goes back. Only who holds the clock moves it.
update merchant
   set test_clock = greatest(test_clock, :at::timestamptz - :real_now::timestamptz),
       clock_held_until = clock_timestamp() + :lease::interval
 where id = :merchant_id and clock_holder = :holder
returning test_clock;

-- name: let_clock_go(merchant_id, holder)!
update merchant
   set clock_holder = '', clock_held_until = null
 where id = :merchant_id and clock_holder = :holder;

-- name: stop_clock(merchant_id, holder)$
-- The test side returns to real time, if it is still held by who asks.
update merchant
   set test_clock = interval '0'
 where id = :merchant_id and clock_holder = :holder
returning id;
