-- name: findings(acquirer, payout, accepted)
-- What differs, the newest first; of one account or payout if named.
select id, acquirer, kind, subject, payout, merchant_id, live, payment_id, reason, found_at, accepted_at, accepted_by,
       accepted_why, corrected, corrected_currency
  from proceeds_finding
 where settled_at is null
   and (:accepted::boolean or accepted_at is null)
   and (:acquirer::text is null or acquirer = :acquirer)
   and (:payout::text is null or payout = :payout)
 order by found_at desc, id desc
 limit 1000;

-- name: payouts(acquirer, since, until, before_at, before_acquirer, before_payout, most)
-- Payouts to the operator's bank, the newest first, with how much differs of each.
select p.acquirer, p.payout as reference, p.at, p.currency, p.amount, p.state, p.is_traced, p.lines_read, p.bank_reference,
       (select count(*) from balance_line l where l.acquirer = p.acquirer and l.payout = p.payout) as lines,
       (select count(*)
          from proceeds_finding f
         where f.acquirer = p.acquirer and f.payout = p.payout and f.settled_at is null and f.accepted_at is null) as findings
  from bank_payout p
 where (:acquirer::text is null or p.acquirer = :acquirer) and p.at >= :since and p.at < :until
   and (p.at, p.acquirer, p.payout) < (:before_at, :before_acquirer, :before_payout)
 order by p.at desc, p.acquirer desc, p.payout desc
 limit :most;

-- name: payout(acquirer, payout)^
select p.acquirer, p.payout as reference, p.at, p.currency, p.amount, p.state, p.is_traced, p.lines_read, p.bank_reference,
       (select count(*) from balance_line l where l.acquirer = p.acquirer and l.payout = p.payout) as lines,
       (select count(*)
          from proceeds_finding f
         where f.acquirer = p.acquirer and f.payout = p.payout and f.settled_at is null and f.accepted_at is null) as findings
  from bank_payout p
 where p.acquirer = :acquirer and p.payout = :payout;

-- name: lines(acquirer, payout, after, most)
-- What a payout is of, its own line left out, with what differs.
select l.line as id, l.kind, l.type, l.at, l.currency, l.amount, l.fee, l.source, l.merchant_id, l.live, l.payment_id,
       l.is_ours, l.examined_at is not null as is_examined,
       (select string_agg(f.kind, ' ' order by f.kind)
          from proceeds_finding f
         where f.acquirer = l.acquirer and f.subject = l.line and f.settled_at is null and f.accepted_at is null) as findings
  from balance_line l
 where l.acquirer = :acquirer and l.payout = :payout and not (l.kind = 'payout' and l.source = l.payout)
   and l.line > :after
 order by l.line
 limit :most;

-- name: costs(since, until)
-- What accounts kept, by month (UTC) and currency.
select acquirer, date_trunc('month', at at time zone 'UTC')::date as month, currency, sum(amount) as amount
  from operator_entry
 where account = 'acquirer_fees' and at >= :since and at < :until
 group by 1, 2, 3;

-- name: incomes(since, until)
-- What merchants paid us in fees for payments at each account, by month (UTC) and currency.
select a.acquirer, date_trunc('month', e.at at time zone 'UTC')::date as month, e.currency, -sum(e.amount) as amount
  from merchant m
 cross join (values (true), (false)) side (live)
 cross join lateral (
     select payment_id, currency, fees as amount, at
       from ledger_posting
      where merchant_id = m.id and live = side.live and at >= :since and at < :until and fees <> 0
      union all
     select payment_id, currency, amount, at
       from ledger_entry_before
      where merchant_id = m.id and live = side.live and at >= :since and at < :until and account = 'fees'
 ) e
  join payment p on p.merchant_id = m.id and p.live = side.live and p.id = e.payment_id
  join payment_attempt a on a.merchant_id = m.id and a.id = p.attempt_id
 group by 1, 2, 3;
