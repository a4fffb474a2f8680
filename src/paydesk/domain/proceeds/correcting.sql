-- name: correct(id, amount, account, by, why, now)^
-- An operator sets our books right where a finding stands, by a posting of its own that sums to zero, in the currency of
-- what it is about; once, until that is taken back. It is taken as it is by that. Only the call that posts it gets it back.
with known as materialized (
    select f.id,
           coalesce((select l.currency from balance_line l where l.acquirer = f.acquirer and l.line = f.subject),
                    (select b.currency from bank_payout b where b.acquirer = f.acquirer and b.payout = f.subject),
                    (select p.currency from payment p
                      where p.merchant_id = f.merchant_id and p.live = f.live and p.id = f.payment_id)) as currency
      from proceeds_finding f
     where f.id = :id
), taken as (
    update proceeds_finding f
       set corrected = :amount, corrected_currency = known.currency, corrected_account = :account, accepted_at = :now,
           accepted_by = :by, accepted_why = :why
      from known
     where f.id = known.id and f.settled_at is null and f.corrected = 0 and known.currency is not null
 returning f.*
), posting as materialized (
    select *, nextval('operator_posting_id_seq') as posting_id from taken
), posted as (
    insert into operator_entry (posting_id, kind, acquirer, finding_id, account, currency, amount, at)
    select p.posting_id, 'correction', p.acquirer, p.id, e.account, p.corrected_currency, e.amount, :now
      from posting p
     cross join lateral (values ('acquirer', p.corrected), (p.corrected_account, -p.corrected)) as e (account, amount)
)
select acquirer, kind, subject, payout, merchant_id, payment_id, reason, corrected, corrected_currency, settled_at
  from taken;

-- name: take_back_correction(id, now)^
-- The opposite of what was posted for a finding, once; what differs still is open again.
with before as materialized (
    select id, corrected, corrected_account from proceeds_finding where id = :id and corrected <> 0 for update
), taken as (
    update proceeds_finding f
       set corrected = 0, accepted_at = null, accepted_by = '', accepted_why = ''
      from before
     where f.id = before.id
 returning f.*, before.corrected as taken_back, before.corrected_account as from_account
), posting as materialized (
    select *, nextval('operator_posting_id_seq') as posting_id from taken
), posted as (
    insert into operator_entry (posting_id, kind, acquirer, finding_id, account, currency, amount, at)
    select p.posting_id, 'correction', p.acquirer, p.id, e.account, p.corrected_currency, e.amount, :now
      from posting p
     cross join lateral (values ('acquirer', -p.taken_back), (p.from_account, p.taken_back)) as e (account, amount)
)
select acquirer, kind, subject, payout, merchant_id, payment_id, reason, -taken_back as corrected, corrected_currency,
       settled_at
  from taken;

-- name: finding_named(id)^
-- Why a finding can't be corrected: it is over, or is corrected already.
select settled_at, corrected, corrected_currency from proceeds_finding where id = :id;
