-- name: open_alarms(before_at, before_id, since, until, kind, most)
-- What nobody has settled, over all merchants, newest first, of one kind if asked.
select a.merchant_id, m.name as merchant_name, a.live, a.id, a.kind, a.subject, a.reason, a.details, a.raised_at,
       a.last_at, a.times, a.settled_at, a.settled_by, a.accepted_at, a.accepted_by, a.accepted_why
  from alarm a
  left join merchant m on m.id = a.merchant_id
 where a.settled_at is null and a.accepted_at is null and (a.raised_at, a.id) < (:before_at, :before_id)
   and a.raised_at >= :since and a.raised_at < :until and (:kind::text is null or a.kind = :kind)
 order by a.raised_at desc, a.id desc
 limit :most;

-- name: accepted_alarms(before_at, before_id, since, until, kind, most)
-- What operators took as it is and stands so still, last accepted first.
select a.merchant_id, m.name as merchant_name, a.live, a.id, a.kind, a.subject, a.reason, a.details, a.raised_at,
       a.last_at, a.times, a.settled_at, a.settled_by, a.accepted_at, a.accepted_by, a.accepted_why
  from alarm a
  left join merchant m on m.id = a.merchant_id
 where a.settled_at is null and a.accepted_at is not null and (a.accepted_at, a.id) < (:before_at, :before_id)
   and a.accepted_at >= :since and a.accepted_at < :until and (:kind::text is null or a.kind = :kind)
 order by a.accepted_at desc, a.id desc
 limit :most;

-- name: settled_alarms(before_at, before_id, since, until, kind, most)
-- What was settled, last settled first.
select a.merchant_id, m.name as merchant_name, a.live, a.id, a.kind, a.subject, a.reason, a.details, a.raised_at,
       a.last_at, a.times, a.settled_at, a.settled_by, a.accepted_at, a.accepted_by, a.accepted_why
  from alarm a
  left join merchant m on m.id = a.merchant_id
 where a.settled_at is not null and (a.settled_at, a.id) < (:before_at, :before_id)
   and a.settled_at >= :since and a.settled_at < :until and (:kind::text is null or a.kind = :kind)
 order by a.settled_at desc, a.id desc
 limit :most;

-- name: side_of_alarm(id)^
-- Ids come from one sequence, so that the command line needs no more; a list of open ones is short.
select merchant_id, live
  from alarm
 where id = :id;

-- name: settle_alarm(merchant_id, live, id, by, now)^
-- Guarded by the state that it leaves: of two who settle, one does.
update alarm
   set settled_at = :now, settled_by = :by
 where merchant_id = :merchant_id and live = :live and id = :id and settled_at is null
returning kind, subject;

-- name: alarms_waiting(most)$
select count(*)
  from (select 1 from alarm where settled_at is null and accepted_at is null limit :most) counted;
