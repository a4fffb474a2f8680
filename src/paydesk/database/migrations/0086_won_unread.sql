-- A dispute that was won before anybody read of it, of a payment that was given back since, was booked by its fee alone.
-- What was taken and returned is posted too, as for every other; together it moves nothing.
with booked as (
    select merchant_id, live, payment_id, currency, sum(taken) as taken, sum(returned) as returned,
           max(coalesce(closed_at, opened_at)) as at
      from chargeback
     group by merchant_id, live, payment_id, currency
), posted as (
    select merchant_id, live, payment_id,
           -coalesce(sum(amount) filter (where kind = 'chargeback'), 0) as taken,
           coalesce(sum(amount) filter (where kind = 'chargeback_reversal'), 0) as returned
      from ledger_entry
     where kind in ('chargeback', 'chargeback_reversal') and account = 'acquirer'
     group by merchant_id, live, payment_id
), missing as (
    select b.merchant_id, b.live, b.payment_id, b.currency, b.at, b.taken - coalesce(l.taken, 0) as amount
      from booked b
      left join posted l on l.merchant_id = b.merchant_id and l.live = b.live and l.payment_id = b.payment_id
     where b.taken - coalesce(l.taken, 0) > 0
       and b.taken - coalesce(l.taken, 0) = b.returned - coalesce(l.returned, 0)
), posting as materialized (
    select missing.*, k.kind, k.sign, nextval('ledger_posting_id_seq') as posting_id
      from missing
     cross join (values ('chargeback', 1), ('chargeback_reversal', -1)) as k (kind, sign)
)
insert into ledger_entry (merchant_id, live, posting_id, kind, payment_id, account, currency, amount, at)
select merchant_id, live, posting_id, kind, payment_id, e.account, currency, e.amount, posted_at(merchant_id, live, at)
  from posting
 cross join lateral (values ('acquirer', -sign * posting.amount), ('available', sign * posting.amount))
    as e (account, amount);
