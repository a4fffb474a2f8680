-- name: keep_unknown(acquirer, references, told, reason, now)!
-- What is not known here waits, as it was told last, and is tried at once; what another cell had booked is asked for again,
-- and so is what is told otherwise. Told as before, it stays as it stands, and is written once in an hour: what no cell knew
-- is tried when it is due. What was given up begins anew, whoever was told of it. Whoever keeps it holds the reading's lease.
insert into dispute_waiting as w (acquirer, acquirer_reference, told, reason, first_at, last_at, next_at, tries,
                                  nowhere_since, stands)
select :acquirer, d.reference, d.told::jsonb, :reason, :now, :now, :now, 0, :now, 'waits'
  from unnest(:references::text[], :told::text[]) as d (reference, told)
    on conflict (acquirer, acquirer_reference) do update
       set told = excluded.told, last_at = excluded.last_at,
           first_at = case when w.stands in ('over', 'given_up') then excluded.first_at else w.first_at end,
           nowhere_since = case when w.stands in ('waits', 'elsewhere', 'unknown') then w.nowhere_since
                                else excluded.nowhere_since end,
           stands = case when w.stands in ('waits', 'elsewhere', 'unknown') then w.stands else 'waits' end,
           reason = case when w.stands in ('waits', 'elsewhere', 'unknown') then w.reason else excluded.reason end,
           next_at = case when w.stands = 'unknown' and same_dispute(w.told, excluded.told) then w.next_at
                          else excluded.next_at end,
           tries = case when w.stands in ('over', 'given_up') then 0 else w.tries end,
           alarmed_at = case when w.stands = 'given_up' then null else w.alarmed_at end
     where w.last_at <= excluded.last_at - interval '1 hour' and w.stands is distinct from 'over' or w.stands is null
        or not same_dispute(w.told, excluded.told);

-- name: keep_known(acquirer, references, told, reasons, next_ats, now)
-- What is of a payment here, and can't be booked, waits with its reason, as it was told last; returns those that wait, and
-- whether an operator was told that nobody knows them.
with told_of as materialized (
    select acquirer_reference
      from dispute_waiting
     where acquirer = :acquirer and acquirer_reference = any(:references::text[]) and alarmed_at is not null
)
insert into dispute_waiting as w (acquirer, acquirer_reference, told, reason, first_at, last_at, next_at, nowhere_since)
select :acquirer, d.reference, d.told::jsonb, d.reason, :now, :now, d.next_at, :now
  from unnest(:references::text[], :told::text[], :reasons::text[], :next_ats::timestamptz[])
    as d (reference, told, reason, next_at)
    on conflict (acquirer, acquirer_reference) do update
       set told = excluded.told, reason = excluded.reason, last_at = excluded.last_at, next_at = excluded.next_at,
           tries = w.tries + 1, first_at = case when w.stands is null then w.first_at else excluded.first_at end,
           stands = null, elsewhere_since = null, alarmed_at = null
returning acquirer_reference, first_at, acquirer_reference in (select acquirer_reference from told_of) as was_told;

-- name: wait_no_more(acquirer, references)
delete from dispute_waiting
 where acquirer = :acquirer and acquirer_reference = any(:references::text[])
returning acquirer_reference;

-- name: due(acquirer, now, most)
-- Those that wait and are to be tried again; only who holds the reading's lease asks.
select acquirer, told, acquirer_reference, last_at, nowhere_since, elsewhere_since, tries, alarmed_at, stands
  from dispute_waiting
 where acquirer = :acquirer and next_at <= :now
 order by tries, next_at
 limit :most;

-- name: untried(before, reads, most)
-- Those that nobody has tried since: their account is read no more, of which an operator may have been told (not of one
-- that the caller reads). What is about an account that goes to another cell waits for that.
select acquirer, told, acquirer_reference, last_at, nowhere_since, elsewhere_since, tries, alarmed_at, stands
  from dispute_waiting
 where next_at < :before and stands is distinct from 'over'
   and (alarmed_at is null or acquirer <> all (:reads::text[]))
   and acquirer <> all (array(select a.name
                                from acquirer_account a
                                join merchant_fence f on f.merchant_id = a.for_merchant_id))
 order by next_at, acquirer, acquirer_reference
 limit :most
   for update skip locked;

-- name: try_later(acquirer, references, next_ats, nowhere_sinces, elsewhere_sinces, alarmed_ats, stands, reasons)!
-- A null next_at: it is given up.
update dispute_waiting w
   set next_at = d.next_at, nowhere_since = d.nowhere_since, elsewhere_since = d.elsewhere_since,
       alarmed_at = d.alarmed_at, stands = d.stands, reason = d.reason, tries = w.tries + 1
  from unnest(:references::text[], :next_ats::timestamptz[], :nowhere_sinces::timestamptz[],
              :elsewhere_sinces::timestamptz[], :alarmed_ats::timestamptz[], :stands::text[], :reasons::text[])
    as d (reference, next_at, nowhere_since, elsewhere_since, alarmed_at, stands, reason)
 where w.acquirer = :acquirer and w.acquirer_reference = d.reference;

-- name: forget(told_before)!
-- What nobody has told for so long, and another cell has booked, whoever reads its account; and what is given up, once no
-- alarm tells of it any more. All else stays.
delete from dispute_waiting w
 where w.last_at < :told_before
   and (w.stands = 'over'
        or w.stands = 'given_up'
           and not exists (select
                             from alarm l
                            where l.kind = 'dispute_waits' and l.settled_at is null
                              and l.subject = format('dispute %s at %s', w.acquirer_reference, w.acquirer)));

-- name: standing(keys, references, tags, untold)
-- Those of these disputes whose purchases a merchant of this cell has made, and what is in the books of them. Of who has
-- gone to another cell what is here is what was. Each is found through its merchant, whose tag it tells, by two index probes
-- however many merchants there are; each merchant is asked for the keys that tell none (untold), if there are any.
with made_by_told as materialized (
    select d.reference, m.id as merchant_id, x.live, x.acquirer, x.payment_id, x.is_forgotten
      from unnest(:keys::text[], :references::text[], :tags::text[]) as d (key, reference, tag)
     cross join lateral (select id from merchant where key_tag = d.tag offset 0) m
     cross join lateral (select live, acquirer, payment_id, false as is_forgotten
                           from payment_attempt
                          where merchant_id = m.id and idempotency_key = d.key
                          union all
                         select false, acquirer, null, true
                           from forgotten_attempt
                          where merchant_id = m.id and idempotency_key = d.key
                         offset 0) x
     where d.tag <> ''
), made_by_anyone as materialized (
    select m.id as merchant_id, x.*
      from merchant m
     cross join lateral (select live, acquirer, idempotency_key, payment_id, false as is_forgotten
                           from payment_attempt
                          where merchant_id = m.id and idempotency_key = any(:untold::text[])
                          union all
                         select false, acquirer, idempotency_key, null, true
                           from forgotten_attempt
                          where merchant_id = m.id and idempotency_key = any(:untold::text[])
                         offset 0) x
     where cardinality(:untold::text[]) > 0
), made as (
    select * from made_by_told
     union all
    select d.reference, o.merchant_id, o.live, o.acquirer, o.payment_id, o.is_forgotten
      from made_by_anyone o
      join unnest(:keys::text[], :references::text[], :tags::text[]) as d (key, reference, tag)
        on d.key = o.idempotency_key and d.tag = ''
)
select a.reference, a.is_forgotten, coalesce(p.currency, '') as currency, coalesce(p.amount, 0) as amount,
       coalesce(p.charged_back, 0) as charged_back, c.state as chargeback_state,
       c.amount as chargeback_amount, c.taken, c.returned, c.told_at
  from made a
  left join payment p on p.merchant_id = a.merchant_id and p.live = a.live and p.id = a.payment_id
  left join chargeback c
    on c.merchant_id = a.merchant_id and c.live = a.live and c.acquirer = a.acquirer
   and c.acquirer_reference = a.reference
 where a.merchant_id <> all (array(select merchant_id from merchant_fence where moved_at is not null));
