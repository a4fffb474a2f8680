-- name: keep(acquirer, references, told, now)!
-- What is not known here waits, as it was told last; what waits already, or is over, stays as it stands, and is written
-- once in an hour however often it is told: some accounts tell all of it in each reading. Whoever keeps it holds the
-- reading's lease.
insert into failed_refund_waiting as w (acquirer, acquirer_reference, told, first_at, nowhere_since, last_at, next_at)
select :acquirer, d.reference, d.told::jsonb, :now, :now, :now, :now
  from unnest(:references::text[], :told::text[]) as d (reference, told)
    on conflict (acquirer, acquirer_reference) do update
       set told = excluded.told, last_at = excluded.last_at
     where w.last_at <= excluded.last_at - interval '1 hour' or w.told - 'at' is distinct from excluded.told - 'at';

-- name: wait_no_more(acquirer, references)
delete from failed_refund_waiting
 where acquirer = :acquirer and acquirer_reference = any(:references::text[])
returning acquirer_reference;

-- name: due(acquirer, now, most)
-- Those that wait and are to be tried again; only who holds the reading's lease asks. First what another cell had booked,
-- and is not booked here, where its merchant has come since: that cell was put back to before.
(select w.acquirer, w.told, w.acquirer_reference, w.last_at, w.nowhere_since, w.elsewhere_since, w.tries,
        w.alarmed_at, w.stands
   from failed_refund_waiting w
   join movement m on m.idempotency_key = w.told ->> 'key' and m.kind = 'refund' and m.acquirer = w.acquirer
  where w.acquirer = :acquirer and w.next_at is null and m.state in ('processing', 'done')
    and not exists (select from merchant_fence f where f.merchant_id = m.merchant_id and f.moved_at is not null)
  order by w.tries
  limit :most)
 union all
(select acquirer, told, acquirer_reference, last_at, nowhere_since, elsewhere_since, tries, alarmed_at, stands
   from failed_refund_waiting
  where acquirer = :acquirer and next_at <= :now
  order by tries, next_at
  limit :most)
 limit :most;

-- name: untried(before, reads, most)
-- Those that nobody has tried since: their account is read no more, of which an operator may have been told (not of one
-- that the caller reads). What is about an account that goes to another cell waits for that.
select acquirer, told, acquirer_reference, last_at, nowhere_since, elsewhere_since, tries, alarmed_at, stands
  from failed_refund_waiting
 where next_at < :before
   and (alarmed_at is null or acquirer <> all (:reads::text[]))
   and acquirer <> all (array(select a.name
                                from acquirer_account a
                                join merchant_fence f on f.merchant_id = a.for_merchant_id))
 order by next_at, acquirer, acquirer_reference
 limit :most
   for update skip locked;

-- name: try_later(acquirer, references, next_ats, nowhere_sinces, elsewhere_sinces, alarmed_ats, stands, reasons)!
-- A null next_at: it is not tried again.
update failed_refund_waiting w
   set next_at = d.next_at, nowhere_since = d.nowhere_since, elsewhere_since = d.elsewhere_since,
       alarmed_at = d.alarmed_at, stands = d.stands, reason = d.reason, tries = w.tries + 1
  from unnest(:references::text[], :next_ats::timestamptz[], :nowhere_sinces::timestamptz[],
              :elsewhere_sinces::timestamptz[], :alarmed_ats::timestamptz[], :stands::text[], :reasons::text[])
    as d (reference, next_at, nowhere_since, elsewhere_since, alarmed_at, stands, reason)
 where w.acquirer = :acquirer and w.acquirer_reference = d.reference;

-- name: forget(told_before)!
-- What nobody has told for so long, and is over or with an operator, whoever reads its account. What another cell has still
-- to book stays.
delete from failed_refund_waiting
 where last_at < :told_before
   and (next_at is null or alarmed_at is not null and stands is distinct from 'elsewhere');

-- name: known(keys)
-- Those of these keys under which a merchant of this cell has a refund, and whether it is known that it failed. Of who has
-- gone to another cell what is here is what was.
select m.idempotency_key as key, bool_or(m.state in ('failed', 'refused')) as is_over
  from merchant s
  join movement m on m.merchant_id = s.id and m.idempotency_key = any(:keys::text[]) and m.kind = 'refund'
 where s.id <> all (array(select merchant_id from merchant_fence where moved_at is not null))
 group by m.idempotency_key;
