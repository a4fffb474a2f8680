-- name: shares(merchant_id, live, day, week, most)^
-- How many pingbacks of the last day and week there are, and how many of them were not acknowledged though they were
-- sent. Only the newest `most` are looked at, so that a busy side costs no more than that; `since` is how far they go
-- back if there were more.
with counted as materialized (
    select count(*) as week, count(*) filter (where created_at >= :day) as day, min(created_at) as first
      from (select created_at
              from pingback
             where merchant_id = :merchant_id and live = :live and created_at >= :week
             order by created_at desc, id desc
             limit :most) newest
), unusual as (
    select count(*) as week, count(*) filter (where created_at >= :day) as day,
           count(*) filter (where untried) as untried_week, count(*) filter (where failed) as failed_week,
           count(*) filter (where untried and created_at >= :day) as untried_day
      from (select created_at, attempts = 0 as untried, state = 'exhausted' as failed
              from pingback
             where merchant_id = :merchant_id and live = :live and state in ('waiting', 'due', 'exhausted', 'muted')
               and state <> 'acknowledged' and created_at >= (select coalesce(first, :week) from counted)
             limit :most) newest
)
select c.day - u.untried_day as day_sent, c.day - u.day as day_acknowledged,
       c.week - u.untried_week as week_sent, c.week - u.week as week_acknowledged, u.failed_week as week_failed,
       case when c.week >= :most then c.first end as since
  from counted c
 cross join unusual u;

-- name: open_ones(merchant_id, live, soon, most)^
-- What is still to be sent, what of it is due by `soon` or was tried before, and what waits for a URL; none is counted beyond `most`.
select count(*) filter (where state = 'due') as due, count(*) filter (where state = 'due' and attempts > 0) as retried,
       count(*) filter (where state = 'due' and due_at < :soon) as soon,
       count(*) filter (where state = 'waiting') as waiting
  from ((select state, attempts, due_at
           from pingback
          where merchant_id = :merchant_id and live = :live and state = 'due'
          limit :most)
         union all
        (select state, attempts, due_at
           from pingback
          where merchant_id = :merchant_id and live = :live and state = 'waiting'
          limit :most)) as open;

-- name: endpoints(merchant_id, live, newest, far, most)
-- The URLs that the newest pingbacks were sent to, how they stand: the last pingback that each took (looked for among
-- the newest `far`), and those that it has not taken since then, with the newest attempt of the last of them.
with tried as materialized (
    select url, max(created_at) as newest_at
      from (select url, attempts, created_at
              from pingback
             where merchant_id = :merchant_id and live = :live
             order by created_at desc, id desc
             limit :newest) newest
     where attempts > 0 and url is not null
     group by url
     order by max(created_at) desc
     limit :most
)
select t.url, ok.finished_at as last_success, failed.since as failing_since, coalesce(failed.pingbacks, 0) as failing,
       last.at as last_failure, last.status, coalesce(last.error, '') as error,
       coalesce(last.response_body, '') as response_body
  from tried t
  left join lateral (
      select finished_at, created_at
        from (select url, state, created_at, finished_at
                from pingback
               where merchant_id = :merchant_id and live = :live
               order by created_at desc, id desc
               limit :far) newest
       where state = 'acknowledged' and url = t.url
       limit 1
  ) ok on true
  left join lateral (
      select min(created_at) as since, count(*) as pingbacks, max(id) as last_id
        from (select id, url, state, attempts, created_at
                from pingback
               where merchant_id = :merchant_id and live = :live
                 and created_at > coalesce(ok.created_at, '-infinity')
               order by created_at desc, id desc
               limit :far) newest
       where url = t.url and attempts > 0 and state in ('due', 'exhausted')
  ) failed on true
  left join lateral (
      select at, status, error, left(response_body, 200) as response_body
        from pingback_attempt
       where merchant_id = :merchant_id and live = :live and pingback_id = failed.last_id
       order by number desc, at desc
       limit 1
  ) last on true
 order by failed.since is null, t.newest_at desc;
