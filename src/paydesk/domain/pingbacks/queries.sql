-- name: claim(now, merchant_id, lease, after_merchant_id, after_live, most_sides, room, test_room, owner_room, side_room, endpoint_room, lane_merchant_ids, lane_lives, lane_urls, lane_loads, lane_rooms, known_merchant_ids, known_lives, known_sinces)
-- Takes due pingbacks under a lease in database time: at most `room`, `test_room` of all test sides, `owner_room` of all
-- that one person owns and `side_room` of one merchant's side (both less what the caller has in hand of it), and
-- `endpoint_room` of one URL (a lane's own room where the caller has one), so that nobody's backlog stands in another's
-- way, however many shops he opens. Sides are visited in order from a place that the caller moves on: next_merchant_id
-- and next_live come back on every row, and there is always one row, without an id if nothing was taken; they are null
-- once the last side was visited. Once a merchant is live, its test pingbacks go to its test URL only (interface.md §9.3).
-- Each side has its own time (shop_now): :now, which is real, and for a test side its clock on top. With :merchant_id only
-- that merchant's test side is visited, and :now is its time (its clock is being moved); the place is then just before it.
-- A copy for staging sends nothing of a live side.
-- A key that has ended signs nothing any more (its id comes from the form): key_id is then the newest one's.
-- A side that is known (passed_sides.py) is looked at from its `since` on, if it has one: what is due before is taken, or
-- goes to URLs that have no room. Known ones come in order, between those that are found by looking, which then walks past
-- none of their entries: those of what was just taken or done are many, and stay while any snapshot is as old as they are.
-- (Between two of them: the other side of the one, the merchants between, the other side of the next. Asked as two bounds of
-- (merchant_id, live), a planner with fresh statistics of a backlog takes the primary key for as good as `pingback_due`, and
-- walks all that a merchant was ever told.)
-- Each side of which something was found comes back as a row without an id, too, with its time and how far it was passed
-- (null: to its end), and so does one that has nothing due, if it has a `since` or URLs without room.
-- What is found says how many of each URL are taken and from when on; these are then locked in the same order, past what
-- another sender is just taking, which found the same ones: several senders at once each get as many as one alone.
-- They are leased by the place where they were locked: by key, a planner without fresh statistics has been seen to walk
-- all that is due for each.
with recursive known as materialized (
    select *
      from unnest(:known_merchant_ids::bigint[], :known_lives::boolean[], :known_sinces::timestamptz[]) with ordinality
        as k (merchant_id, live, since, place)
), side as (
    select :after_merchant_id::bigint as merchant_id, :after_live::boolean as live, false as has_due,
           coalesce((select min(place)
                       from known
                      where (merchant_id, live) > (:after_merchant_id::bigint, :after_live::boolean)), 0) as place
    union all
    select coalesce(other.merchant_id, next_known.merchant_id), coalesce(other.live, next_known.live),
           other.merchant_id is not null or next_known.since is null
           or (select true
                 from pingback
                where merchant_id = next_known.merchant_id and live = next_known.live and state = 'due'
                  and due_at >= next_known.since
                order by due_at
                limit 1) is not null,
           case when other.merchant_id is null then side.place + 1 else side.place end
      from side
      left join known next_known on next_known.place = side.place
      left join lateral (
         select merchant_id, live
           from ((select merchant_id, live
                    from pingback
                   where merchant_id = side.merchant_id and live and state = 'due'
                     and not side.live and next_known.merchant_id is distinct from side.merchant_id
                   order by due_at
                   limit 1)
                   union all
                 (select merchant_id, live
                    from pingback
                   where merchant_id > side.merchant_id
                     and merchant_id < coalesce(next_known.merchant_id, 9223372036854775807) and state = 'due'
                   order by merchant_id, live, due_at
                   limit 1)
                   union all
                 (select merchant_id, live
                    from pingback
                   where merchant_id = next_known.merchant_id and not live and state = 'due'
                     and next_known.live and next_known.merchant_id <> side.merchant_id
                   order by due_at
                   limit 1)) as between_them
          order by merchant_id, live
          limit 1
     ) as other on true
     where other.merchant_id is not null or next_known.merchant_id is not null
), lane as materialized (
    select *
      from unnest(:lane_merchant_ids::bigint[], :lane_lives::boolean[], :lane_urls::text[], :lane_loads::integer[],
                  :lane_rooms::integer[])
        as l (merchant_id, live, url, load, room)
), busy as materialized (
    select merchant_id, live, sum(load)::integer as load, array_agg(url) as urls, array_agg(room) as rooms,
           array_agg(url) filter (where room <= 0) as full_urls
      from lane
     group by merchant_id, live
), seen as materialized (
    select merchant_id, live from side where has_due limit :most_sides::integer
), owner as materialized (
    select distinct on (m.merchant_id) m.merchant_id, m.person_id
      from membership m
     where m.role = 'owner'
       and m.merchant_id = any(array(select merchant_id from seen union select merchant_id from busy where load > 0))
     order by m.merchant_id, m.created_at, m.person_id
), owned as materialized (
    select o.person_id, sum(b.load)::integer as load
      from busy b
      join owner o on o.merchant_id = b.merchant_id
     where b.load > 0
     group by o.person_id
), visited as materialized (
    select s.merchant_id, s.live, greatest(:side_room - coalesce(b.load, 0), 0) as room, b.urls, b.rooms,
           coalesce(o.person_id, -s.merchant_id) as owner_id,
           greatest(:owner_room - coalesce(owned.load, 0), 0) as owner_room,
           coalesce(b.full_urls, '{}') as full_urls, coalesce(k.since, '-infinity') as since,
           not s.live and m.went_live_at is not null as test_only, m.test_pingback_url,
           :now::timestamptz + case when :merchant_id::bigint is null then side_clock(s.live, m.test_clock)
                                    else interval '0' end as shop_now
      from seen s
      join merchant m on m.id = s.merchant_id
      left join busy b on b.merchant_id = s.merchant_id and b.live = s.live
      left join known k on k.merchant_id = s.merchant_id and k.live = s.live
      left join owner o on o.merchant_id = s.merchant_id
      left join owned on owned.person_id = o.person_id
     where (:merchant_id::bigint is null or (s.merchant_id = :merchant_id and not s.live))
       and coalesce(s.merchant_id <> all (array(select merchant_id from merchant_fence)), true)
), found as (
    select v.merchant_id, v.live, v.test_only, v.shop_now, v.owner_id, v.owner_room, v.room as side_room, p.url,
           p.due_at,
           coalesce(v.rooms[array_position(v.urls, p.url)], :endpoint_room::integer) as room,
           row_number() over (partition by v.merchant_id, v.live order by p.due_at, p.id) as turn,
           row_number() over (partition by v.merchant_id, v.live, p.url order by p.due_at, p.id) as endpoint_turn
      from visited v
     cross join lateral (
         select id, due_at, case when v.test_only then v.test_pingback_url else url end as url
           from pingback
          where merchant_id = v.merchant_id and live = v.live and state = 'due'
            and due_at >= v.since and due_at <= v.shop_now
            and not (v.test_only and v.test_pingback_url is null)
            and not (v.live and (select copied_at is not null from deployment))
            and (leased_until is null or leased_until < now())
            and case when v.test_only then v.test_pingback_url else url end <> all (v.full_urls)
          order by due_at
          limit v.room
     ) p
), fair as (
    select *, fits and owner_turn <= owner_room and (live or mode_turn <= :test_room) as is_fair
      from (
          select *, row_number() over (partition by fits, owner_id order by turn) as owner_turn,
                 row_number() over (partition by fits, live order by turn) as mode_turn
            from (select *, endpoint_turn <= room as fits from found) fitting
      ) in_turn
), weighed as materialized (
    select *, is_fair and row_number() over (partition by is_fair order by turn) <= :room as is_chosen from fair
), passed as (
    select merchant_id, live, shop_now,
           coalesce(min(due_at) filter (where not is_chosen),
                    case when count(*) >= max(side_room) then max(due_at) end) as passed_to
      from weighed
     group by merchant_id, live, shop_now
    union all
    select v.merchant_id, v.live, v.shop_now, null
      from visited v
     where v.room > 0 and (v.full_urls <> '{}' or v.since > '-infinity')
       and not exists (select from weighed w where w.merchant_id = v.merchant_id and w.live = v.live)
), chosen as materialized (
    select merchant_id, live, test_only, shop_now, url, min(turn) as turn, min(due_at) as first_due_at,
           count(*) as most
      from weighed
     where is_chosen
     group by merchant_id, live, test_only, shop_now, url
), held as materialized (
    select p.place, c.url, c.turn, c.shop_now
      from chosen c
     cross join lateral (
         select ctid as place
           from pingback
          where merchant_id = c.merchant_id and live = c.live and state = 'due'
            and due_at >= c.first_due_at and due_at <= c.shop_now
            and (leased_until is null or leased_until < now())
            and (c.test_only or url = c.url)
          order by due_at
          limit c.most
            for update skip locked
     ) p
), taken as (
    update pingback p
       set leased_until = now() + :lease::interval, url = held.url
      from held
     where p.ctid = held.place
 returning p.merchant_id, p.live, p.id, p.url, p.sign_version, p.key_id, p.format, p.payload, p.due_at, held.shop_now,
           held.turn
)
select place.next_merchant_id, place.next_live, got.merchant_id, got.live, got.id, got.url, got.sign_version,
       got.format, got.payload, got.due_at, got.shop_now, got.passed_to,
       case when k.valid_until <= now()
            then (select max(newest.id) from merchant_key newest where newest.merchant_id = got.merchant_id)
            else got.key_id end as key_id
  from (select case when count(*) >= :most_sides then max(merchant_id) end as next_merchant_id,
               (array_agg(live order by merchant_id desc, live desc))[1] as next_live
          from seen) as place
  left join (select *, null::timestamptz as passed_to from taken
              union all
             select merchant_id, live, null, null, null, null, null, null, null, shop_now, null, passed_to
               from passed) as got
    on true
  left join merchant_key k on k.merchant_id = got.merchant_id and k.id = got.key_id
 order by got.turn, got.due_at, got.id;

-- name: first_due()$
-- The merchant of one that is due now or later, null if none is: a light look, before `claim` is asked without need.
select merchant_id
  from pingback
 where state = 'due' and (merchant_id, live) > (0, false)
 order by merchant_id, live, due_at
 limit 1;

-- name: say_due()!
-- Tells the senders that listen (waking.py): its own transaction, which writes nothing and waits for nobody's commit.
select pg_notify('paydesk_pingbacks', '');

-- name: record(merchant_ids, lives, ids, ats, urls, request_headers, request_bodies, statuses, response_bodies, errors, durations_ms, acknowledgements, most_attempts, resend_interval, in_doubt)
-- Attempts happened: each is logged, and its pingback becomes acknowledged, due again, or exhausted. An attempt that is
-- recorded late (the lease had run out) is logged too; an `ok` counts even then, a failure changes nothing any more. With
-- `in_doubt` an attempt that is here already is left alone: the database may have died after it had recorded it, before it
-- said so. (Asked for each attempt, it costs a look into the log; of an empty one a planner reads all of it each time.)
with outcome as materialized (
    select *
      from unnest(:merchant_ids::bigint[], :lives::boolean[], :ids::bigint[], :ats::timestamptz[], :urls::text[],
                  :request_headers::jsonb[], :request_bodies::text[], :statuses::integer[], :response_bodies::text[],
                  :errors::text[], :durations_ms::integer[], :acknowledgements::boolean[])
        as o (merchant_id, live, id, at, url, request_headers, request_body, status, response_body, error, duration_ms,
              acknowledged)
     where not (:in_doubt::boolean
                and exists (select 1
                              from pingback_attempt a
                             where a.merchant_id = o.merchant_id and a.live = o.live and a.pingback_id = o.id
                               and a.at = o.at))
), moved as (
    update pingback p
       set attempts = p.attempts + 1,
           leased_until = null,
           state = case when o.acknowledged and p.state in ('due', 'exhausted') then 'acknowledged'
                        when p.state = 'due' and p.attempts + 1 >= :most_attempts then 'exhausted'
                        else p.state end,
           due_at = case when p.state = 'due' and not o.acknowledged and p.attempts + 1 < :most_attempts
                         then o.at + :resend_interval::interval
                         else p.due_at end,
           finished_at = case when o.acknowledged and p.state in ('due', 'exhausted')
                                or p.state = 'due' and p.attempts + 1 >= :most_attempts
                              then o.at
                              else p.finished_at end
      from outcome o
     where p.merchant_id = o.merchant_id and p.live = o.live and p.id = o.id
 returning p.state, p.attempts, o.*
), logged as (
    insert into pingback_attempt (merchant_id, live, pingback_id, number, at, url, request_headers, request_body,
                                  status, response_body, error, duration_ms)
    select merchant_id, live, id, attempts, at, url, request_headers, request_body, status, response_body, error,
           duration_ms
      from moved
)
select state, count(*) as pingbacks from moved group by state;

-- name: release(merchant_ids, lives, ids)!
-- Gives back what was claimed and not sent, so that another worker need not wait for the lease to run out.
update pingback p
   set leased_until = null
  from unnest(:merchant_ids::bigint[], :lives::boolean[], :ids::bigint[]) as r (merchant_id, live, id)
 where p.merchant_id = r.merchant_id and p.live = r.live and p.id = r.id and p.state = 'due';

-- name: postpone(merchant_ids, lives, ids, pause)!
-- What could not be stamped or recorded is tried again later, by its side's own time. It counts as no attempt.
update pingback p
   set due_at = greatest(p.due_at, now() + side_clock(p.live, m.test_clock))
              + :pause::interval,
       leased_until = null
  from unnest(:merchant_ids::bigint[], :lives::boolean[], :ids::bigint[]) as r (merchant_id, live, id)
  join merchant m on m.id = r.merchant_id
 where p.merchant_id = r.merchant_id and p.live = r.live and p.id = r.id and p.state = 'due';

-- name: sealed_keys(merchant_ids, key_ids)
-- The keys that pingbacks are stamped with, by the ids that `claim` gives.
select k.merchant_id, k.id, k.private_key_sealed, k.vault_key_id
  from unnest(:merchant_ids::bigint[], :key_ids::bigint[]) as wanted (merchant_id, id)
  join merchant_key k on k.merchant_id = wanted.merchant_id and k.id = wanted.id;

-- name: send_waiting(merchant_id, live, url, now)!
-- What waited for a URL is due at once, by its side's own time; :now is real.
update pingback p
   set state = 'due', url = :url,
       due_at = :now::timestamptz + side_clock(p.live, m.test_clock)
  from merchant m
 where m.id = :merchant_id and p.merchant_id = m.id and p.live = :live and p.state = 'waiting';

-- name: follow_account(merchant_id)!
-- What is due goes where a new one would go, now that the account's URLs have changed: its next attempt is not made at a
-- server of long ago.
update pingback p
   set url = found.url
  from (
      select p.live, p.id, pingback_destination(p, m) as url
        from merchant m
        join pingback p on p.merchant_id = m.id and p.state = 'due'
       where m.id = :merchant_id
  ) found
 where p.merchant_id = :merchant_id and p.live = found.live and p.id = found.id and p.state = 'due'
   and found.url is not null and p.url <> found.url;

-- name: send_all_waiting(now)!
-- What still waits though its account has a URL: it was written just while the URL was being set. A test side's time
-- runs ahead by its clock.
update pingback p
   set state = 'due', url = account.url, due_at = :now::timestamptz + account.clock
  from (
      select m.id as merchant_id, side.live,
             side_clock(side.live, m.test_clock) as clock,
             case when side.live then m.pingback_url
                  when m.went_live_at is not null then m.test_pingback_url
                  else coalesce(m.test_pingback_url, m.pingback_url) end as url
        from merchant m
       cross join (values (true), (false)) as side (live)
  ) account
 where p.merchant_id = account.merchant_id and p.live = account.live and p.state = 'waiting'
   and account.url is not null and coalesce(p.merchant_id <> all (array(select merchant_id from merchant_fence)), true);

-- name: goes_to(merchant_id, live, id)$
-- Where a pingback goes that is sent again, null if nowhere; as in resend.
select case when not p.live and m.went_live_at is not null then m.test_pingback_url
            else coalesce(pingback_destination(p, m), p.url) end
  from pingback p
  join merchant m on m.id = p.merchant_id
 where p.merchant_id = :merchant_id and p.live = :live and p.id = :id;

-- name: resend(merchant_id, live, id, url, only_failed, now)^
-- One attempt more, at once, whatever came of those before, or (:only_failed) of one alone that is exhausted still; to
-- :url, or where a new one would go, by the account's URLs of now (and where it went if there is none); to the test URL
-- alone where only that is allowed (interface.md §9.3).
with target as (
    select p.merchant_id, p.live, p.id,
           case when not p.live and m.went_live_at is not null then m.test_pingback_url
                else coalesce(:url::text, pingback_destination(p, m), p.url) end as url
      from pingback p
      join merchant m on m.id = p.merchant_id
     where p.merchant_id = :merchant_id and p.live = :live and p.id = :id
)
update pingback p
   set state = 'due', due_at = :now, finished_at = null, url = target.url
  from target
 where p.merchant_id = target.merchant_id and p.live = target.live and p.id = target.id
   and (p.state <> 'waiting' or :url is not null) and target.url is not null and target.url = coalesce(:url, target.url)
   and (p.state = 'exhausted' or not :only_failed)
returning p.id, p.live, p.event, p.payment_id, p.url, p.sign_version, p.format, p.payload, p.state, p.attempts,
          p.due_at, p.created_at, p.finished_at;

-- name: find(merchant_id, live, id)^
select id, live, event, payment_id, url, sign_version, format, payload, state, attempts, due_at, created_at,
       finished_at
  from pingback
 where merchant_id = :merchant_id and live = :live and id = :id;

-- name: attempts_of(merchant_id, live, id)
select number, at, url, request_headers, request_body, status, response_body, error, duration_ms
  from pingback_attempt
 where merchant_id = :merchant_id and live = :live and pingback_id = :id
 order by number, at;
