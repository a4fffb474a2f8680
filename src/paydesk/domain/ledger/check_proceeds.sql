-- Rules about the operator's own books: what acquirers keep and pay out. They are of no merchant, so they are left out where
-- one is asked about; each as in check_payments.sql.

-- name: operator_postings_balance(merchant_id)
select 'operator_entry' as table_name, null::bigint as merchant_id, min(id) as id,
       format('posting %s of %s sums to %s %s, not to 0', posting_id, acquirer, sum(amount), currency) as detail
  from operator_entry
 where :merchant_id::bigint is null
 group by posting_id, acquirer, currency
having sum(amount) <> 0;

-- name: lines_posted(merchant_id)
-- A line has one posting, which says what it says; one that cost and moved nothing has none.
with posted as (
    select acquirer, line, count(distinct posting_id) as postings,
           coalesce(sum(amount) filter (where account = 'acquirer_fees'), 0) as fees,
           coalesce(sum(amount) filter (where account = 'under_way'), 0) as under_way,
           coalesce(sum(amount) filter (where account = 'other'), 0) as other
      from operator_entry
     where :merchant_id::bigint is null and line is not null
     group by acquirer, line
), told as (
    select acquirer, line, fee, case when kind in ('payout', 'payout_return') then -amount else 0 end as under_way,
           case when kind = 'other' and of_amount is null then -amount else 0 end as other,
           fee <> 0 or (amount <> 0 and (of_amount is not null or kind in ('payout', 'payout_return', 'other')))
               as has_posting
      from balance_line
     where :merchant_id::bigint is null
)
select 'balance_line' as table_name, null::bigint as merchant_id, acquirer || ' ' || line as id,
       format('says fees %s, under way %s and other %s, and its %s postings say %s, %s and %s',
              t.fee, t.under_way, t.other, coalesce(p.postings, 0), p.fees, p.under_way, p.other) as detail
  from told t
  full join posted p using (acquirer, line)
 where (t.fee, t.under_way, t.other) is distinct from (coalesce(p.fees, 0), coalesce(p.under_way, 0), coalesce(p.other, 0))
    or coalesce(p.postings, 0) <> coalesce(t.has_posting, false)::integer;

-- name: corrections_posted(merchant_id)
-- A correction is posted once, as its finding says, and stands only as long as what it corrects differs.
with posted as (
    select finding_id, sum(amount) filter (where account = 'acquirer') as amount
      from operator_entry
     where :merchant_id::bigint is null and finding_id is not null
     group by finding_id
), said as (
    select id, corrected, settled_at from proceeds_finding where :merchant_id::bigint is null and corrected <> 0
)
select 'proceeds_finding' as table_name, null::bigint as merchant_id, coalesce(s.id, p.finding_id) as id,
       case when s.settled_at is not null
            then format('is corrected by %s, and agrees by itself now: take that back', s.corrected)
            else format('is corrected by %s, and its postings come to %s', coalesce(s.corrected, 0),
                        coalesce(p.amount, 0)) end as detail
  from said s
  full join posted p on p.finding_id = s.id
 where coalesce(s.corrected, 0) <> coalesce(p.amount, 0) or s.settled_at is not null;

-- name: arrivals_posted(merchant_id)
-- Of a payout as much came to the operator's bank as it says, if it has arrived, and else nothing.
with posted as (
    select acquirer, payout, sum(amount) filter (where account = 'bank') as amount
      from operator_entry
     where :merchant_id::bigint is null and payout is not null
     group by acquirer, payout
), told as (
    select acquirer, payout, case when state = 'arrived' then amount else 0 end as amount
      from bank_payout
     where :merchant_id::bigint is null
)
select 'bank_payout' as table_name, null::bigint as merchant_id, acquirer || ' ' || payout as id,
       format('is of %s at the bank, and its postings bring %s', coalesce(t.amount::text, 'nothing known'),
              coalesce(p.amount, 0)) as detail
  from told t
  full join posted p using (acquirer, payout)
 where t.amount is distinct from coalesce(p.amount, 0);

-- name: payouts_whole(merchant_id)
-- A payout that is not the sum of its lines stands among what differs, once the balance was read to its end.
select 'bank_payout' as table_name, null::bigint as merchant_id, p.acquirer || ' ' || p.payout as id,
       format('is of %s %s, its lines come to %s, and nothing names that', p.amount, p.currency, s.total) as detail
  from bank_payout p
 cross join lateral (
     select coalesce(sum(l.amount - l.fee) filter (where l.currency = p.currency), 0) as total
       from balance_line l
      where l.acquirer = p.acquirer and l.payout = p.payout and not (l.kind = 'payout' and l.source = p.payout)
 ) s
  join balance_reading r on r.acquirer = p.acquirer and r.leased_until is null
 where :merchant_id::bigint is null and p.lines_read and s.total <> p.amount
   and not exists (select
                     from proceeds_finding f
                    where f.acquirer = p.acquirer and f.kind = 'sum_differs' and f.subject = p.payout
                      and f.settled_at is null);
