-- name: to_examine(acquirer, after, most)
-- Lines that were not compared with our books yet, and those of open findings, with what all lines of the same purchase,
-- and those of the same refund of it, come to.
with wanted as (
    (select line from balance_line where acquirer = :acquirer and examined_at is null and line > :after
      order by line limit :most)
     union
    (select subject from proceeds_finding where acquirer = :acquirer and settled_at is null and subject > :after
      order by subject limit :most)
)
select l.line as id, l.kind, l.type, l.at, l.currency, l.amount, l.fee, l.of_amount, l.of_currency, l.source, l.purchase,
       l.key, l.of_key, l.is_ours, l.payout,
       coalesce(s.total, l.amount) as of_purchase, coalesce(s.of_source, l.amount) as of_source, c.of_key as purchase_key, c.is_ours as purchase_is_ours,
       r.key as refund_key
  from wanted w
  join balance_line l on l.acquirer = :acquirer and l.line = w.line
  left join lateral (
      select sum(coalesce(o.of_amount, o.amount)) as total,
             sum(coalesce(o.of_amount, o.amount)) filter (where o.source = l.source) as of_source
        from balance_line o
       where l.purchase <> '' and o.acquirer = l.acquirer and o.purchase = l.purchase
  ) s on true
  left join lateral (
      select o.of_key, o.is_ours
        from balance_line o
       where l.purchase <> '' and o.acquirer = l.acquirer and o.purchase = l.purchase and o.kind = 'capture'
       order by o.line
       limit 1
  ) c on true
  left join lateral (
      select o.key
        from balance_line o
       where l.kind = 'refund_failure' and l.purchase <> '' and o.acquirer = l.acquirer and o.purchase = l.purchase
         and o.kind = 'refund' and o.source = l.source
       limit 1
  ) r on true
 order by l.line
 limit :most;

-- name: attempts_named(acquirer, keys)
-- The attempts behind keys: one index probe per merchant finds each.
select a.idempotency_key as key, a.merchant_id, a.live, a.payment_id, a.state, a.amount, a.currency
  from merchant m
  join payment_attempt a
    on a.merchant_id = m.id and a.idempotency_key = any(:keys::text[]) and a.acquirer = :acquirer;

-- name: refunds_named(acquirer, keys)
select v.idempotency_key as key, v.merchant_id, v.live, v.payment_id, v.state, v.amount, v.currency
  from merchant m
  join movement v
    on v.merchant_id = m.id and v.idempotency_key = any(:keys::text[]) and v.acquirer = :acquirer and v.kind = 'refund';

-- name: chargebacks_named(acquirer, references)
select c.acquirer_reference as reference, c.merchant_id, c.live, c.payment_id,
       coalesce(c.disputed_amount, c.amount) as amount, coalesce(c.disputed_currency, c.currency) as currency, c.taken,
       c.returned
  from merchant m
 cross join (values (true), (false)) side (live)
  join chargeback c
    on c.merchant_id = m.id and c.live = side.live and c.acquirer = :acquirer
   and c.acquirer_reference = any(:references::text[]);

-- name: forgotten(acquirer, keys)
-- Which keys are of test sides that were emptied since.
select idempotency_key as key
  from forgotten_attempt
 where acquirer = :acquirer and idempotency_key = any(:keys::text[]);

-- name: examined(acquirer, lines, merchant_ids, lives, payment_ids)!
-- Lines were compared; what they are of stands with them from now on.
update balance_line l
   set examined_at = clock_timestamp(), merchant_id = t.merchant_id, live = t.live, payment_id = t.payment_id
  from unnest(:lines::text[], :merchant_ids::bigint[], :lives::boolean[], :payment_ids::bigint[])
       as t (line, merchant_id, live, payment_id)
 where l.acquirer = :acquirer and l.line = t.line;

-- name: record_findings(acquirer, kinds, subjects, payouts, merchant_ids, lives, payment_ids, reasons, now)
-- What differs, each once; one that was settled and is there again is open again. Those that are news come back.
insert into proceeds_finding as f (acquirer, kind, subject, payout, merchant_id, live, payment_id, reason, found_at)
select :acquirer, kind, subject, payout, merchant_id, live, payment_id, reason, :now
  from unnest(:kinds::text[], :subjects::text[], :payouts::text[], :merchant_ids::bigint[], :lives::boolean[],
              :payment_ids::bigint[], :reasons::text[])
       as t (kind, subject, payout, merchant_id, live, payment_id, reason)
 order by kind, subject
    on conflict (acquirer, kind, subject) do update
       set reason = excluded.reason, payout = excluded.payout, merchant_id = excluded.merchant_id, live = excluded.live,
           payment_id = excluded.payment_id, settled_at = null,
           found_at = case when f.settled_at is null then f.found_at else excluded.found_at end,
           accepted_at = case when f.settled_at is null and f.reason = excluded.reason then f.accepted_at end
     where f.settled_at is not null or f.reason <> excluded.reason or f.payout is distinct from excluded.payout
returning kind, subject, reason, payout, merchant_id, live, payment_id;

-- name: untaken(acquirers)
-- What differs at these accounts, is open, and nobody has taken as it is.
select acquirer, kind, subject, reason, payout, merchant_id, live, payment_id
  from proceeds_finding
 where acquirer = any(:acquirers::text[]) and settled_at is null and accepted_at is null
 order by id;

-- name: settle_findings(acquirer, subjects, kinds, still_kinds, still_subjects, now)
-- Of the subjects that were looked at for some kinds of findings, those that are no more.
update proceeds_finding f
   set settled_at = :now
 where f.acquirer = :acquirer and f.subject = any(:subjects::text[]) and f.kind = any(:kinds::text[])
   and f.settled_at is null
   and not exists (select
                     from unnest(:still_kinds::text[], :still_subjects::text[]) as s (kind, subject)
                    where s.kind = f.kind and s.subject = f.subject)
returning kind, subject;

-- name: payouts_to_examine(acquirer, since)
-- Payouts of late, and those of open findings, with what their lines come to.
select p.payout as reference, p.at, p.currency, p.amount, p.state, p.lines_read, s.total, s.lines, s.others
  from bank_payout p
 cross join lateral (
     select coalesce(sum(l.amount - l.fee) filter (where l.currency = p.currency), 0) as total, count(*) as lines,
            array_remove(array_agg(distinct l.currency), p.currency) as others
       from balance_line l
      where l.acquirer = p.acquirer and l.payout = p.payout and not (l.kind = 'payout' and l.source = p.payout)
 ) s
 where p.acquirer = :acquirer
   and (p.at >= :since
        or p.payout in (select subject from proceeds_finding where acquirer = :acquirer and settled_at is null));

-- name: missing(acquirer, since, until, most)
-- What was taken there by our books, and is not in the balance, or in none of its payouts: of attempts sent between two
-- times (real time), and of open findings. The latter only where a later line was paid out since. When it was captured is
-- reckoned back by its side's clock.
select a.idempotency_key as key, a.merchant_id, a.live, a.payment_id, a.amount, a.currency, p.captured_at,
       l.line is not null as is_told
  from payment_attempt a
  join payment p on p.merchant_id = a.merchant_id and p.live = a.live and p.id = a.payment_id and p.attempt_id = a.id
  join merchant m on m.id = a.merchant_id
  left join balance_line l on l.acquirer = a.acquirer and l.of_key = a.idempotency_key and l.kind = 'capture'
 where a.acquirer = :acquirer and a.state = 'approved' and a.amount > 0
   and a.not_after between :since::timestamptz and :until::timestamptz
   and p.captured_at - side_clock(a.live, m.test_clock) < :until and p.state in ('captured', 'partially_refunded', 'refunded', 'charged_back')
   and (l.line is null
        or (l.payout is null
            and exists (select
                          from balance_line o
                         where o.acquirer = a.acquirer and o.currency = l.currency and o.kind = 'capture'
                           and o.at > l.at + interval '1 day' and o.payout is not null)))
 order by a.not_after
 limit :most;

-- name: open_missing(acquirer, kinds)
-- The payments of open findings that something is missing, by their keys.
select f.kind, f.subject
  from proceeds_finding f
 where f.acquirer = :acquirer and f.settled_at is null and f.kind = any(:kinds::text[]);

-- name: since_come(acquirer, keys)
-- Of payments that were missing, those that are in the balance now, and whether they were paid out; and those that took
-- nothing by our books any more.
select t.key, l.line is not null as is_told, l.payout is not null as is_paid,
       coalesce(bool_or(a.state = 'approved'), false) as is_taken
  from unnest(:keys::text[]) as t (key)
  left join balance_line l on l.acquirer = :acquirer and l.of_key = t.key and l.kind = 'capture'
  left join merchant m on true
  left join payment_attempt a on a.merchant_id = m.id and a.idempotency_key = t.key and a.acquirer = :acquirer
 group by t.key, l.line, l.payout;

-- name: fees(acquirer)
select currency, rate, fixed from acquirer_fee where acquirer = :acquirer;
