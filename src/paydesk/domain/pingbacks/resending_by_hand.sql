-- name: count_exhausted(merchant_id, live, since, until)$
-- How many failed pingbacks of any event could be sent again: those that still have a URL to go to.
select count(*)
  from pingback p
  join merchant m on m.id = p.merchant_id
 where p.merchant_id = :merchant_id and p.live = :live and p.state = 'exhausted' and p.state <> 'acknowledged'
   and p.created_at >= :since and p.created_at < :until
   and (p.live or m.went_live_at is null or m.test_pingback_url is not null);

-- name: count_exhausted_of_event(merchant_id, live, event, since, until)$
select count(*)
  from pingback p
  join merchant m on m.id = p.merchant_id
 where p.merchant_id = :merchant_id and p.live = :live and p.state = 'exhausted' and p.state in ('waiting', 'exhausted')
   and p.event = :event and p.created_at >= :since and p.created_at < :until
   and (p.live or m.went_live_at is null or m.test_pingback_url is not null);

-- name: resend_exhausted(merchant_id, live, event, since, until, now, pace, most)$
-- One attempt more for failed pingbacks, the oldest first; returns how many. What fails again is exhausted again. They
-- become due one after another, `pace` apart: what is reported meanwhile takes its turn among them, and does not wait
-- until thousands of old ones are through. They go where a new one would go, by the account's URLs of now (and where
-- they went if there is none).
with found as materialized (
    select p.id, coalesce(pingback_destination(p, m), p.url) as url
      from pingback p
      join merchant m on m.id = p.merchant_id
     where p.merchant_id = :merchant_id and p.live = :live and p.state = 'exhausted' and p.state <> 'acknowledged'
       and (:event::text is null or p.event = :event) and p.created_at >= :since and p.created_at < :until
       and (p.live or m.went_live_at is null or m.test_pingback_url is not null)
     order by p.created_at, p.id
     limit :most
       for update of p skip locked
), numbered as (
    select id, url, row_number() over (order by id) - 1 as turn from found
), moved as (
    update pingback p
       set state = 'due', due_at = :now::timestamptz + numbered.turn * :pace::interval, finished_at = null,
           url = numbered.url
      from numbered
     where p.merchant_id = :merchant_id and p.id = numbered.id and p.state = 'exhausted'
 returning p.id
)
select count(*) from moved;
