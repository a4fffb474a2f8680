-- name: forgive(merchant_ids, lives, subjects, tries)!
-- These tries were no card testing. Rows are locked in the order in which they are counted.
with forgiven as materialized (
    select t.merchant_id, t.live, t.subject, o.tries
      from unnest(:merchant_ids::bigint[], :lives::boolean[], :subjects::text[], :tries::integer[])
        as o (merchant_id, live, subject, tries)
      join card_try t on t.merchant_id = o.merchant_id and t.live = o.live and t.subject = o.subject
     order by t.merchant_id, t.subject, t.live
       for update of t
)
update card_try t
   set tries = greatest(t.tries - f.tries, 0)
  from forgiven f
 where t.merchant_id = f.merchant_id and t.live = f.live and t.subject = f.subject;

-- name: untry(merchant_id, live, counted_at)!
-- Whoever makes many tries that reach no bank must not make the share of declines look small.
update card_guard_minute
   set tries = greatest(tries - 1, 0)
 where merchant_id = :merchant_id and live = :live and minute = date_trunc('minute', :counted_at::timestamptz);

-- name: count_declines(merchant_ids, lives, now, since)
-- Counts declines, and returns how the merchants' tries have gone since then; where 3-D Secure is asked for from all,
-- since the minute after that began.
with said as materialized (
    select merchant_id, live, count(*) as declines
      from unnest(:merchant_ids::bigint[], :lives::boolean[]) as asked (merchant_id, live)
     group by merchant_id, live
), counted as (
    insert into card_guard_minute as m (merchant_id, live, minute, tries, declines, refused)
    select merchant_id, live, date_trunc('minute', :now::timestamptz), 0, declines, 0
      from said
     order by merchant_id, live
        on conflict (merchant_id, live, minute) do update set declines = m.declines + excluded.declines
 returning merchant_id, live, minute, tries, declines
), guarded as (
    select said.merchant_id, said.live,
           coalesce(g.authenticate_until > :now, false) as authenticate,
           (g.limits ->> 'declines')::bigint as own_limit,
           case when g.authenticate_until > :now
                then greatest(:since, date_trunc('minute', g.authenticate_since) + interval '1 minute')
                else :since::timestamptz
           end as since
      from said
      left join card_guard g on g.merchant_id = said.merchant_id and g.live = said.live
)
select g.merchant_id, g.live, g.authenticate, g.own_limit, sum(each.tries)::bigint as tries, sum(each.declines)::bigint as declines
  from guarded g
 cross join lateral (
       select m.tries, m.declines
         from card_guard_minute m
        where m.merchant_id = g.merchant_id and m.live = g.live and m.minute >= g.since
          and m.minute <> date_trunc('minute', :now::timestamptz)
        union all
       select c.tries, c.declines
         from counted c
        where c.merchant_id = g.merchant_id and c.live = g.live and c.minute >= g.since) each
 group by g.merchant_id, g.live, g.authenticate, g.own_limit;

-- name: demand_authentication(merchant_ids, lives, now, until)
-- From now on everybody who pays these merchants is asked for 3-D Secure; rows come back for whom that is new.
insert into card_guard as g (merchant_id, live, authenticate_since, authenticate_until)
select merchant_id, live, :now, :until
  from unnest(:merchant_ids::bigint[], :lives::boolean[]) as asked (merchant_id, live)
 order by merchant_id, live
    on conflict (merchant_id, live) do update
   set authenticate_since = excluded.authenticate_since, authenticate_until = excluded.authenticate_until
 where coalesce(g.authenticate_until <= :now, true)
returning merchant_id, live;

-- name: pause(merchant_ids, lives, now, until, authenticate_until)
-- These merchants take no cards until then; rows come back for whom that is new.
update card_guard g
   set paused_until = :until, authenticate_until = :authenticate_until
  from unnest(:merchant_ids::bigint[], :lives::boolean[]) as asked (merchant_id, live)
 where g.merchant_id = asked.merchant_id and g.live = asked.live and coalesce(g.paused_until <= :now, true)
returning g.merchant_id, g.live;

-- name: forget_tries(now)!
delete from card_try where until < :now;

-- name: forget_minutes(before)!
delete from card_guard_minute where minute < :before;
