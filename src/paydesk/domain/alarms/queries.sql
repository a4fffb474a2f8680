-- name: raise_alarms(merchant_ids, lives, kinds, subjects, reasons, details, now)
-- One open alarm of a kind on one thing: what is raised again counts up and says its newest reason. Arrays come in the
-- order of that key, so that two who raise the same ones wait for each other and don't lock each other out. What an
-- operator accepted stays so while the same fact is told; another one begins to wait anew.
insert into alarm (merchant_id, live, kind, subject, reason, details, raised_at, last_at)
select r.merchant_id, r.live, r.kind, r.subject, r.reason, r.details::jsonb, :now, :now
  from unnest(:merchant_ids::bigint[], :lives::boolean[], :kinds::text[], :subjects::text[], :reasons::text[],
              :details::text[])
    as r (merchant_id, live, kind, subject, reason, details)
on conflict (merchant_id, live, kind, subject) where settled_at is null
   do update set times = case when said_otherwise(alarm, excluded.details, excluded.reason) then 1 else alarm.times + 1 end,
                 raised_at = case when said_otherwise(alarm, excluded.details, excluded.reason) then excluded.raised_at
                                  else alarm.raised_at end,
                 accepted_at = case when said_otherwise(alarm, excluded.details, excluded.reason) then null
                                    else alarm.accepted_at end,
                 last_at = excluded.last_at, reason = excluded.reason, details = excluded.details
returning merchant_id, live, id, kind, subject, reason, times;

-- name: settle_alarms(merchant_id, live, kind, subjects, by, now)
-- Only what is open is settled, once.
update alarm
   set settled_at = :now, settled_by = :by
 where merchant_id = :merchant_id and live = :live and kind = :kind and subject = any(:subjects::text[])
   and settled_at is null
returning id;

-- name: settle_all_but(merchant_id, live, kind, subjects, by, now)
-- What of a kind is still so is named; all else has mended itself.
update alarm
   set settled_at = :now, settled_by = :by
 where merchant_id = :merchant_id and live = :live and kind = :kind and subject <> all(:subjects::text[])
   and settled_at is null
returning id;

-- name: settle_quiet(kind, quiet_since, by, now)
-- What is tried again and again, and was not raised since a time, has mended itself.
update alarm
   set settled_at = :now, settled_by = :by
 where kind = :kind and settled_at is null and last_at < :quiet_since
returning id;

-- name: count_open()
select kind, count(*)
  from alarm
 where settled_at is null and accepted_at is null
 group by kind;
