-- name: begin_count(few, slow, per_row, share, at_least)$
-- Whether it is time to count all queues, which then is under way. Few that were counted quickly are counted whenever
-- somebody asks. More are counted by one at a time, and again only after a rest for each that was due, and for as long as
-- that took. A count that was begun and has not ended after a minute was left.
insert into queue_count as c (begun_at)
values (clock_timestamp())
    on conflict (one) do update set begun_at = excluded.begun_at
 where c.begun_at > clock_timestamp()
    or clock_timestamp() - c.begun_at > case
           when c.ended_at >= c.begun_at and (c.counted > :few or c.took > :slow::interval)
               then c.ended_at - c.begun_at + greatest(c.counted * :per_row::interval, c.took * :share, :at_least)
           when c.ended_at >= c.begun_at then interval '-1 second'
           when c.counted <= :few and c.took <= :slow and clock_timestamp() - c.begun_at < interval '1 second'
               then interval '-1 second'
           else interval '1 minute'
       end
returning true;

-- name: count_queues(now)!
-- What each queue has to do by now, the real time; since when the oldest waits, by its side's own time; and how much of it
-- is in somebody's hands. Side by side, so that the index of that queue's claim serves it. (To read may be to tidy a page,
-- which is logged; nobody has to wait until a standby has that.)
with hurried as materialized (
    select set_config('synchronous_commit', 'off', true)
), side as materialized (
    select m.id as merchant_id, s.live, m.went_live_at, m.test_pingback_url,
           side_clock(s.live, m.test_clock) as clock
      from merchant m
     cross join (values (true), (false)) as s (live)
), found as materialized (
    select 'pingbacks' as name, coalesce(sum(one.due), 0)::bigint as due, min(one.due_at - side.clock) as oldest_at,
           coalesce(sum(one.in_hand), 0)::bigint as in_hand
      from side
     cross join lateral (
         select count(*) as due, min(p.due_at) as due_at,
                count(*) filter (where p.leased_until > clock_timestamp()) as in_hand
           from pingback p
          where p.merchant_id = side.merchant_id and p.live = side.live
            and p.state = 'due' and p.due_at <= :now::timestamptz + side.clock
     ) one
     where side.live or side.went_live_at is null or side.test_pingback_url is not null
     union all
    select 'renewals', coalesce(sum(one.due), 0)::bigint, min(one.due_at - side.clock), 0
      from side
     cross join lateral (
         select count(*) as due, min(b.date_next) as due_at
           from subscription b
          where b.merchant_id = side.merchant_id and b.live = side.live
            and b.date_next <= :now::timestamptz + side.clock and b.date_next is not null
            and b.charging_attempt_id is null and b.charge_takes_long is null
     ) one
     union all
    select 'changes', coalesce(sum(one.due), 0)::bigint, min(one.due_at - side.clock), 0
      from side
     cross join lateral (
         select count(*) as due, min(c.due_at) as due_at
           from subscription_change c
          where c.merchant_id = side.merchant_id and c.live = side.live
            and c.due_at <= :now::timestamptz + side.clock and c.due_at is not null and c.state = 'open'
     ) one
     union all
    select 'outcomes', count(*), min(lookup_at), count(*) filter (where leased_until > clock_timestamp())
      from payment_attempt
     where lookup_at <= :now
     union all
    select 'movements', count(*), min(lookup_at), count(*) filter (where leased_until > clock_timestamp())
      from movement
     where lookup_at <= :now
     union all
    select 'shipping', coalesce(sum(one.due), 0)::bigint, min(one.due_at - side.clock), 0
      from side
     cross join lateral (
         select count(*) as due, min(p.shipping_due_at) as due_at
           from payment p
          where p.merchant_id = side.merchant_id and p.live = side.live
            and p.shipping_due_at <= :now::timestamptz + side.clock and p.shipping_due_at is not null
     ) one
     union all
    select 'settlements', coalesce(sum(one.due), 0)::bigint, min(one.due_at - side.clock), 0
      from side
     cross join (values (0::smallint), (1::smallint)) next (part)
     cross join lateral (
         select count(*) as due, min(p.funds_due_at) as due_at
           from payment p
          where p.merchant_id = side.merchant_id and p.live = side.live and money_part(p.settled_at) = next.part
            and p.funds_look_at <= :now::timestamptz + side.clock and p.funds_due_at <= :now::timestamptz + side.clock
     ) one
     union all
    select 'mails', count(*), min(due_at), count(*) filter (where leased_until > clock_timestamp())
      from mail
     where state = 'due' and due_at <= :now
), kept as (
    insert into queue_depth as d (name, due, oldest_at, in_hand, counted_at, seen_at)
    select name, due, oldest_at, in_hand, :now, statement_timestamp()
      from found
        on conflict (name) do update
       set due = excluded.due, oldest_at = excluded.oldest_at, in_hand = excluded.in_hand,
           counted_at = excluded.counted_at, seen_at = excluded.seen_at
     where d.seen_at <= excluded.seen_at or d.seen_at > clock_timestamp()
)
update queue_count c
   set ended_at = clock_timestamp(), took = clock_timestamp() - statement_timestamp(),
       counted = (select sum(due) from found)
  from hurried;

-- name: queue_depths()
select name, due, oldest_at, in_hand, counted_at from queue_depth;

-- name: subscriptions_failing()$
-- Live subscriptions that run and whose last charge failed, through the index of those that fail.
select count(*) from subscription where live and failures > 0 and state in ('Trial', 'Active');

-- name: logs(names)
-- The monthly partitions of the logs: how many, from which to which, and their size with indexes, in bytes.
select p.relname as name, count(*) filter (where c.relname ~ '_m[0-9]{6}$') as months,
       coalesce(min(substring(c.relname from '_m([0-9]{6})$')), '') as first,
       coalesce(max(substring(c.relname from '_m([0-9]{6})$')), '') as last,
       sum(pg_total_relation_size(c.oid))::bigint as bytes
  from pg_inherits i
  join pg_class c on c.oid = i.inhrelid
  join pg_class p on p.oid = i.inhparent
 where p.relname = any(:names::text[])
 group by p.relname
 order by p.relname;

-- name: database_now()^
-- The database's size in bytes, its connections of ours, and since when its oldest transaction is open.
select pg_database_size(current_database()) as bytes,
       (select count(*) from pg_stat_activity where datname = current_database()) as connections,
       (select min(xact_start) from pg_stat_activity
         where datname = current_database() and pid <> pg_backend_pid() and state <> 'idle') as oldest_transaction;

-- name: say_alive(name, started_at, now)!
insert into worker_seen (name, started_at, seen_at)
values (:name, :started_at, :now)
    on conflict (name) do update set seen_at = excluded.seen_at;

-- name: forget_workers(before)!
delete from worker_seen where seen_at < :before;

-- name: say_goodbye(name)!
delete from worker_seen where name = :name;

-- name: workers()
select name, started_at, seen_at from worker_seen order by started_at, name;

-- name: acquirer_health(since)
-- What became of the attempts that began since a time (real), by acquirer.
select acquirer, count(*) as attempts,
       count(*) filter (where state in ('approved', 'voiding', 'voided')) as approved,
       count(*) filter (where state = 'declined') as declined,
       count(*) filter (where state = 'challenged') as challenged,
       count(*) filter (where state in ('failed', 'abandoned')) as ended,
       count(*) filter (where state = 'processing') as unknown,
       count(*) filter (where lookups > 0 and challenge_url = '') as unanswered,
       count(*) filter (where decline_reason in ('processing_error', 'request_refused')) as errors,
       max(not_after) filter (where state = 'approved') - interval '1 minute' as last_approval,
       max(not_after) filter (where (lookups > 0 and challenge_url = '') or decline_reason in ('processing_error', 'request_refused'))
           - interval '1 minute' as last_trouble
  from payment_attempt
 where not_after >= :since::timestamptz + interval '1 minute' and acquirer <> ''
 group by acquirer
 order by acquirer;

-- name: list_acts(person_id, action, merchant_id, by_command, before_at, before_id, since, until, most)
-- What operators and the command line did, at any merchant, newest first; every filter may be null.
with page as (
    select *
      from audit_entry
     where operator and at >= :since and at < :until and (at, id) < (:before_at, :before_id)
       and (:person_id::bigint is null or person_id = :person_id)
       and (:action::text is null or action = :action)
       and (:merchant_id::bigint is null or merchant_id = :merchant_id)
       and (not :by_command::boolean or person_id is null)
     order by at desc, id desc
     limit :most
)
select e.merchant_id, coalesce(m.name, '') as merchant_name, e.id, e.at, e.person_id, coalesce(p.name, '') as name,
       e.client_address, e.action, e.subject, e.details
  from page e
  left join person p on p.id = e.person_id
  left join merchant m on m.id = e.merchant_id
 order by e.at desc, e.id desc;

-- name: operators()
select id, name from person where operator order by name, id;

-- name: people_named(ids)
select id, name from person where id = any(:ids::bigint[]);

-- name: profiles_waiting(most)$
select count(*)
  from (select from business_profile where status = 'submitted'
         union all
        select from profile_change where status = 'waiting'
         limit :most) one;
