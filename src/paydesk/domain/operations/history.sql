-- name: read_history()^
-- How far the database's history has come, on which server, and what is held.
select d.tag as deployment, d.epoch, h.number, h.beaten_at, server_place() as place, h.arrived, h.whole, h.judged_at,
       h.held_at, h.held_because, h.held_since
  from deployment d, history h;

-- name: beat(rest)!
-- History goes on: once a second however many beat, by the database's clock, which may be set back. Not on a server on
-- which nobody has looked yet whether all is there: the last beat before says how far back to look.
update history
   set number = number + 1, beaten_at = clock_timestamp()
 where (beaten_at <= clock_timestamp() - :rest::interval or beaten_at > clock_timestamp())
   and (whole = server_place() or held_at is not null);

-- name: arrive(gap)!
-- The first connection to another server (a standby that was promoted, a restored copy): ids go on behind a gap before
-- anything is inserted, since it may have forgotten some that were given out. Whoever comes second waits for the first.
-- A database that was just made has no server before, and has given out nothing.
with come as (
    update history
       set arrived = server_place()
      from (select arrived as before from history for update) as known
     where arrived <> server_place()
 returning before
)
select setval(format('%I.%I', schemaname, sequencename)::regclass,
              coalesce(last_value, start_value) + :gap::bigint * increment_by)
  from pg_sequences, come
 where schemaname = 'public' and before <> '';

-- name: hold(epoch, above, because, since, gap)^
-- Shut the gate, begin an epoch above the one remembered and raise the ids, all at once and once: of several processes
-- that saw the same epoch the first one does it. A hold that stands is widened, and keeps what it said.
with begun as (
    update deployment
       set epoch = greatest(epoch, :above::integer) + 1
     where epoch = :epoch::integer
 returning epoch
), held as (
    update history
       set held_at = coalesce(held_at, clock_timestamp()), looking_until = null,
           held_because = case when held_because = '' then :because else held_because end,
           held_since = least(held_since, :since::timestamptz, beaten_at)
      from begun
 returning begun.epoch
), raised as (
    select setval(format('%I.%I', schemaname, sequencename)::regclass,
                  coalesce(last_value, start_value) + :gap::bigint * increment_by)
      from pg_sequences, held
     where schemaname = 'public'
)
select held.epoch, (select count(*) from raised) as sequences from held;

-- name: claim_look(lease)$
-- One process at a time reads the acquirers' lists.
update history
   set looking_until = clock_timestamp() + :lease::interval
 where looking_until is null or looking_until < clock_timestamp()
returning true;

-- name: release_look()!
update history set looking_until = null where looking_until is not null;

-- name: found_whole(place)!
-- Nothing that acquirers know is missing on the server that was looked at; another that took over meanwhile was not.
update history
   set whole = server_place(), looking_until = null
 where held_at is null and server_place() = :place;

-- name: lift(accepted_until, epoch, place)$
-- The hold ends: nothing is missing any more, or an operator takes what acquirers have from before a time. Who compared did
-- so in an epoch, on a server (null: any): what took over meanwhile, or is held for more by now, stays held.
update history
   set held_at = null, held_because = '', held_since = null, whole = server_place(), looking_until = null,
       judged_at = coalesce(:accepted_until::timestamptz, judged_at)
  from (select h.held_because as why
          from deployment d, history h
         where d.epoch = coalesce(:epoch::integer, d.epoch)
           for share of d
           for update of h) as known
 where held_at is not null and server_place() = coalesce(:place, server_place())
returning why;
