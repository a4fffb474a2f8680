-- name: attempts_unknown(older_than)$
-- For the operator's gauge: attempts whose outcome is still open.
select count(*) from payment_attempt where lookup_at is not null and state = 'processing' and created_at < :older_than;

-- name: pending_payments(now)
-- For the operator's gauges: payments whose customers' banks have yet to say whether they pay, and for how long the
-- oldest one waits in real time.
select a.live, count(*) as waiting,
       extract(epoch from max(:now::timestamptz - (a.created_at - side_clock(a.live, m.test_clock))))::float8 as oldest
  from payment_attempt a
  join merchant m on m.id = a.merchant_id
 where a.lookup_at is not null and a.state = 'pending'
 group by a.live;
