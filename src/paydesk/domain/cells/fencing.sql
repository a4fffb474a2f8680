-- name: find(merchant_id)^
select merchant_id, arrives, other_cell, since, closed_at, moved_at from merchant_fence where merchant_id = :merchant_id;

-- name: in_words(merchant_id)$
-- Why nothing is written, null if it is: as the trigger says it.
select fence_in_words(f) from merchant_fence f where merchant_id = :merchant_id;

-- name: every()
select merchant_id, arrives, other_cell, since, closed_at, moved_at from merchant_fence order by merchant_id;

-- name: half_way(before)
-- Whose move stands still. A pass over who arrives, and what deletes who has moved, may take long: each holds the fence's
-- row until it ends, by which it is known without a lock of ours. Between two passes whoever moves who arrives is known by
-- the lock of the merchant's id (see living.sql). Who is closed is told also while somebody is at it: it sells nothing.
select merchant_id, arrives, other_cell, since, closed_at, moved_at
  from merchant_fence f
 where coalesce(moved_at, since) < :before
   and not ((arrives or moved_at is not null) and exists (
       select from pg_locks l where l.locktype = 'transactionid' and l.granted and l.transactionid = f.xmax))
   and not (arrives and exists (
       select from pg_locks l
        where l.locktype = 'advisory' and l.granted and l.objsubid = 1
          and l.database = (select oid from pg_database where datname = current_database())
          and (l.classid::bigint << 32 | l.objid::bigint) = f.merchant_id))
 order by merchant_id;

-- name: begin(merchant_id, arrives, other_cell)$
-- Who comes is closed from the first moment on, and is not here yet; who goes is. A fence that stands stays as it is.
insert into merchant_fence (merchant_id, arrives, other_cell, since, closed_at)
select :merchant_id, :arrives, :other_cell, clock_timestamp(), case when :arrives then clock_timestamp() end
 where :arrives <> exists (select from merchant where id = :merchant_id)
    on conflict (merchant_id) do nothing
returning merchant_id;

-- name: close(merchant_id)!
-- Waits for whoever has written anything of the merchant's and has not committed it (see refuse_while_fenced).
update merchant_fence set closed_at = clock_timestamp() where merchant_id = :merchant_id and closed_at is null;

-- name: say_moved(merchant_id, closed_at)$
-- Nothing comes back if there is no fence any more, or somebody has put up another since the last pass, before which the
-- merchant went on.
update merchant_fence
   set moved_at = coalesce(moved_at, clock_timestamp())
 where merchant_id = :merchant_id and not arrives and closed_at = :closed_at
returning moved_at;

-- name: lift(merchant_id, other_cell)$
-- Whoever has been at it for long does not lift the fence of a later move.
delete from merchant_fence
 where merchant_id = :merchant_id and moved_at is null and other_cell = coalesce(:other_cell, other_cell)
returning merchant_id;

-- name: arrival(merchant_id, from_cell)^
-- Whoever copies holds it until the copy is committed: one at a time, and nobody takes the fence away meanwhile.
select copied_of, copied_below::text as copied_below, people
  from merchant_fence
 where merchant_id = :merchant_id and arrives and other_cell = :from_cell
   for update;

-- name: note_copied(merchant_id, copied_of, copied_below, people)!
update merchant_fence
   set copied_of = :copied_of, copied_below = :copied_below::text::xid8, people = people || :people::bigint[]
 where merchant_id = :merchant_id and arrives;

-- name: hold_beginnings()!
-- Nobody is fenced from here until the transaction's end: who reads that a trigger is on finds it so when they are.
lock table merchant_fence in share mode;

-- name: forget(merchant_id)!
-- Nothing is left of who has moved that anybody could write.
delete from merchant_fence where merchant_id = :merchant_id and moved_at is not null;

-- name: hold_moved(merchant_id)$
-- Until the transaction's end nobody forgets that the merchant has moved, so that it does not come back meanwhile.
select true from merchant_fence where merchant_id = :merchant_id and not arrives and moved_at is not null for update;

-- name: nobody_is_fenced()$
select not exists (select from merchant_fence);

-- name: guards(tables)
-- Which of these tables have the trigger, and whether it is on.
select c.relname as table, t.tgenabled <> 'D' as is_on
  from pg_trigger t
  join pg_class c on c.oid = t.tgrelid
 where t.tgname = 'merchant_is_fenced' and c.relnamespace = 'public'::regnamespace and c.relname = any(:tables::text[]);

-- name: writing(tables)$
-- Transactions that have written into these tables, or are about to, and have not ended: each holds a lock until it does.
-- Those of moves, which write of who is closed alone, hold another one from before the first row on.
with held as materialized (
    select virtualtransaction, locktype, relation, mode, classid, objid
      from pg_locks
     where granted and database = (select oid from pg_database where datname = current_database())
)
select coalesce(array_agg(distinct h.virtualtransaction), '{}')
  from held h
  join pg_class c on c.oid = h.relation
 where h.locktype = 'relation' and h.mode = 'RowExclusiveLock'
   and c.relnamespace = 'public'::regnamespace and c.relname = any(:tables::text[])
   and not exists (
       select from held m
        where m.virtualtransaction = h.virtualtransaction and m.locktype = 'advisory'
          and m.classid = 'merchant_fence'::regclass and m.objid = 0
   );

-- name: write_of_closed_alone()!
-- The lock that `writing` knows moves by, until the transaction's end; nobody waits for it.
select pg_advisory_xact_lock_shared('merchant_fence'::regclass::oid::integer, 0);

-- name: in_flight(merchant_id)^
-- Calls of a merchant's that somebody is making at this moment: who makes one holds a lease, or its outcome is not looked
-- for before it is over. Times are the database's. (A comparison with a list writes nothing of an account's: it may be cut
-- off, and nobody who asks for one out of turn ends its lease.)
with fenced as (
    select clock_timestamp() as now
)
select (select count(*) from payment_attempt
         where merchant_id = :merchant_id and lookup_at is not null
           and (leased_until > now or state = 'processing' and lookups = 0 and lookup_at > now)) as attempts,
       (select count(*) from movement
         where merchant_id = :merchant_id and lookup_at is not null
           and (leased_until > now or state = 'processing' and lookups = 0 and lookup_at > now)) as movements,
       (select count(*) from card_change
         where merchant_id = :merchant_id and lookup_at is not null
           and (leased_until > now or state = 'processing' and lookups = 0 and lookup_at > now)) as card_changes,
       (select count(*) from pingback
         where merchant_id = :merchant_id and state = 'due' and leased_until > now) as pingbacks,
       (select count(*) from mail where merchant_id = :merchant_id and state = 'due' and leased_until > now) as mails,
       (select count(*) from kept_release where merchant_id = :merchant_id and leased_until > now) as releases,
       (select count(*) from api_call
         where merchant_id = :merchant_id and status is null and leased_until > now) as calls,
       (select count(*) from chargeback
         where merchant_id = :merchant_id and evidence_state = 'sending'
           and evidence_tried_at > now - interval '1 minute') as evidence,
       (select count(*) from merchant where id = :merchant_id and clock_held_until > now) as clocks,
       (select count(*)
          from (select acquirer, leased_until from dispute_reading
                 union all
                select acquirer, leased_until from failed_refund_reading
                 union all
                select acquirer, leased_until from balance_reading) r
          join acquirer_account a on a.name = r.acquirer and a.for_merchant_id = :merchant_id
         where r.leased_until > now) as readings
  from fenced;
