-- Rules about what comes after the payment: captures, voids, refunds, chargebacks, and where the money is; each as in
-- check_payments.sql.

-- name: funds_agree(merchant_id)
-- Where a payment's money is, by its own columns and by the ledger: owed by the acquirer, pending, reserved, taken as fees.
-- (A chargeback that stands aside is of money that the payment does not have.)
with aside as (
    select merchant_id, payment_id, sum(taken - returned) as taken
      from chargeback
     where (:merchant_id::bigint is null or merchant_id = :merchant_id) and aside
     group by merchant_id, payment_id
), posted as (
    select merchant_id, payment_id,
           coalesce(sum(amount) filter (where account = 'acquirer'), 0) as acquirer,
           coalesce(sum(amount) filter (where account = 'pending'), 0) as pending,
           coalesce(sum(amount) filter (where account = 'reserve'), 0) as reserve,
           coalesce(sum(amount) filter (where account = 'fees' and kind <> 'chargeback_fee'), 0) as fees
      from ledger_entry
     where (:merchant_id::bigint is null or merchant_id = :merchant_id) and payment_id is not null
     group by merchant_id, payment_id
), expected as (
    select p.merchant_id, p.id,
           p.amount - p.refunded - p.charged_back - coalesce(a.taken, 0) as acquirer,
           case when p.settled_at is null then -(p.net - p.pending_taken) else 0 end as pending,
           case when p.reserve_released_at is null then -(p.reserve - p.reserve_taken) else 0 end as reserve,
           -(p.fees - p.fees_taken) as fees
      from payment p
      left join aside a on a.merchant_id = p.merchant_id and a.payment_id = p.id
     where (:merchant_id::bigint is null or p.merchant_id = :merchant_id)
       and p.state in ('captured', 'partially_refunded', 'refunded', 'charged_back')
)
select 'payment' as table_name, e.merchant_id, e.id,
       format('should have acquirer %s, pending %s, reserve %s, fees %s in the ledger, but has %s, %s, %s, %s',
              e.acquirer, e.pending, e.reserve, e.fees, coalesce(p.acquirer, 0), coalesce(p.pending, 0),
              coalesce(p.reserve, 0), coalesce(p.fees, 0)) as detail
  from expected e
  left join posted p on p.merchant_id = e.merchant_id and p.payment_id = e.id
 where (e.acquirer, e.pending, e.reserve, e.fees)
       is distinct from
       (coalesce(p.acquirer, 0), coalesce(p.pending, 0), coalesce(p.reserve, 0), coalesce(p.fees, 0));

-- name: reversals_add_up(merchant_id)
-- What was given back is the sum of the refunds, what is on its way of those in progress, and no more than was captured.
-- What is charged back is what the bank has of it by its chargebacks, and may be more.
with given as (
    select merchant_id, payment_id,
           coalesce(sum(amount) filter (where state = 'done'), 0) as refunded,
           coalesce(sum(amount) filter (where state = 'processing'), 0) as refunding
      from movement
     where (:merchant_id::bigint is null or merchant_id = :merchant_id) and kind = 'refund'
     group by merchant_id, payment_id
), taken_back as (
    select merchant_id, payment_id, sum(taken - returned) as charged_back
      from chargeback
     where (:merchant_id::bigint is null or merchant_id = :merchant_id) and not aside
     group by merchant_id, payment_id
)
select 'payment' as table_name, p.merchant_id, p.id,
       format('of %s %s is %s: refunded %s and refunding %s, but its refunds say %s and %s; charged back %s, but its '
              'chargebacks say %s', p.amount, p.currency, p.state, p.refunded, p.refunding, coalesce(g.refunded, 0),
              coalesce(g.refunding, 0), p.charged_back, coalesce(t.charged_back, 0)) as detail
  from payment p
  left join given g on g.merchant_id = p.merchant_id and g.payment_id = p.id
  left join taken_back t on t.merchant_id = p.merchant_id and t.payment_id = p.id
 where (:merchant_id::bigint is null or p.merchant_id = :merchant_id)
   and ((p.refunded, p.refunding, p.charged_back)
        is distinct from (coalesce(g.refunded, 0), coalesce(g.refunding, 0), coalesce(t.charged_back, 0))
        or p.refunded + p.refunding > p.amount
        or (p.state = 'charged_back') <> (p.charged_back > 0)
        or p.charged_back <= 0
           and ((p.state = 'refunded') <> (p.refunded > 0 and p.refunded = p.amount)
                or (p.state = 'partially_refunded') <> (p.refunded > 0 and p.refunded < p.amount)));

-- name: chargebacks_posted(merchant_id)
-- What the ledger says was taken, returned and charged as a fee is what the chargebacks of the payment say, and a
-- chargeback's sums and steps agree: none without money, none that returned what it never took, no fee without a take.
with posted as (
    select merchant_id, payment_id,
           -coalesce(sum(amount) filter (where kind = 'chargeback' and account = 'acquirer'), 0) as taken,
           coalesce(sum(amount) filter (where kind = 'chargeback_reversal' and account = 'acquirer'), 0) as returned,
           -coalesce(sum(amount) filter (where kind = 'chargeback_fee' and account = 'fees'), 0) as fees
      from ledger_entry
     where (:merchant_id::bigint is null or merchant_id = :merchant_id)
       and kind in ('chargeback', 'chargeback_reversal', 'chargeback_fee')
     group by merchant_id, payment_id
), booked as (
    select merchant_id, payment_id, sum(taken) as taken, sum(returned) as returned, sum(fee) as fees
      from chargeback
     where :merchant_id::bigint is null or merchant_id = :merchant_id
     group by merchant_id, payment_id
)
select 'payment' as table_name, merchant_id, payment_id as id,
       format('has chargebacks that took %s, returned %s and cost %s in fees, but the ledger says %s, %s and %s',
              coalesce(b.taken, 0), coalesce(b.returned, 0), coalesce(b.fees, 0), coalesce(l.taken, 0),
              coalesce(l.returned, 0), coalesce(l.fees, 0)) as detail
  from posted l
  full join booked b using (merchant_id, payment_id)
 where (coalesce(l.taken, 0), coalesce(l.returned, 0), coalesce(l.fees, 0))
       <> (coalesce(b.taken, 0), coalesce(b.returned, 0), coalesce(b.fees, 0))
 union all
select 'chargeback', c.merchant_id, c.id,
       format('is %s over %s %s of payment %s (%s), took %s in %s steps, returned %s in %s, for a fee of %s', c.state,
              c.amount, c.currency, c.payment_id, p.currency, c.taken, c.takes, c.returned, c.returns, c.fee)
  from chargeback c
  join payment p on p.merchant_id = c.merchant_id and p.id = c.payment_id
 where (:merchant_id::bigint is null or c.merchant_id = :merchant_id)
   and ((c.taken > 0) <> (c.takes > 0) or (c.returned > 0) <> (c.returns > 0)
        or c.fee > 0 and c.takes = 0
        or c.currency <> p.currency
        or c.state in ('inquiry', 'dropped') and c.taken > c.returned
        or c.aside is false and c.takes > 0
           and p.state not in ('captured', 'partially_refunded', 'refunded', 'charged_back'));

-- name: movements_agree(merchant_id)
-- A capture or void in progress holds its payment, and a finished one has moved it.
with named (kind, state, payment_states) as (
    values ('capture', 'processing', array['authorized']), ('void', 'processing', array['authorized']),
           ('capture', 'done', array['captured', 'partially_refunded', 'refunded', 'charged_back']),
           ('void', 'done', array['voided'])
)
select 'movement' as table_name, m.merchant_id, m.id,
       format('is a %s that is %s, but payment %s is %s and held by %s', m.kind, m.state, p.id, p.state,
              coalesce(p.moving_id::text, 'none')) as detail
  from movement m
  join payment p on p.merchant_id = m.merchant_id and p.id = m.payment_id
  join named n on n.kind = m.kind and n.state = m.state
 where (:merchant_id::bigint is null or m.merchant_id = :merchant_id)
   and (p.state <> all(n.payment_states) or (m.state = 'processing') <> (p.moving_id is not distinct from m.id))
 union all
select 'payment', p.merchant_id, p.id,
       case when p.moving_id is not null then format('is held by movement %s, which is not under way', p.moving_id)
            else format('is %s, but no %s says so', p.state, case p.state when 'voided' then 'void' else 'capture' end)
        end
  from payment p
  join payment_attempt a on a.merchant_id = p.merchant_id and a.id = p.attempt_id
 where (:merchant_id::bigint is null or p.merchant_id = :merchant_id)
   and (p.moving_id is not null
        and not exists (select
                          from movement m
                         where m.merchant_id = p.merchant_id and m.id = p.moving_id and m.payment_id = p.id
                           and m.kind in ('capture', 'void') and m.state = 'processing')
        or (p.state = 'voided'
            or p.state in ('captured', 'partially_refunded', 'refunded', 'charged_back') and not a.capture)
           and not exists (select
                             from movement m
                            where m.merchant_id = p.merchant_id and m.payment_id = p.id and m.state = 'done'
                              and m.kind = case p.state when 'voided' then 'void' else 'capture' end));

-- name: reversals_reported(merchant_id)
-- Each refund and void is told once, each refund that failed, and each step of a chargeback: money taken, money returned;
-- unless the account did not want to hear.
with happened as (
    select merchant_id, id, case when m.kind = 'void' then array['refund'] else array['refund', 'partial_refund'] end
               as events, (not muted)::integer as tell, 'movement' as table_name
      from movement m
     where m.kind in ('refund', 'void') and m.state in ('done', 'failed')
     union all
    select merchant_id, id, array['refund_failed'], (not failure_muted)::integer, 'movement'
      from movement
     where state = 'failed'
     union all
    select merchant_id, id, array['chargeback'], takes - cardinality(array_positions(muted, 'chargeback')), 'chargeback'
      from chargeback
     union all
    select merchant_id, id, array['chargeback_reversed'],
           returns - cardinality(array_positions(muted, 'chargeback_reversed')), 'chargeback'
      from chargeback
)
select h.table_name, h.merchant_id, h.id,
       format('has %s pingbacks of %s, and should have %s', count(g.id), array_to_string(h.events, ' or '),
              h.tell) as detail
  from happened h
  left join pingback g on g.merchant_id = h.merchant_id and g.reversal_id = h.id and g.event = any(h.events)
 where (:merchant_id::bigint is null or h.merchant_id = :merchant_id)
 group by h.table_name, h.merchant_id, h.id, h.events, h.tell
having count(g.id) <> h.tell;

-- name: authorizations_stand(merchant_id)
-- What is authorized has a deadline that the worker will look at; nothing else has one.
select 'payment' as table_name, merchant_id, id,
       format('is %s with a deadline at %s, looked at %s', state, coalesce(ship_by::text, 'no time'),
              coalesce(shipping_due_at::text, 'never')) as detail
  from payment
 where (:merchant_id::bigint is null or merchant_id = :merchant_id)
   and (state = 'authorized') <> (ship_by is not null and shipping_due_at is not null);

-- name: closings_agree(merchant_id)
-- Everything up to the horizon is closed, so that each account and currency must agree.
with summed as (
    select merchant_id, currency, account, sum(amount) as amount
      from ledger_entry
     where live and account in ('pending', 'available', 'reserve')
       and id <= (select closed_id from ledger_horizon)
       and (:merchant_id::bigint is null or merchant_id = :merchant_id)
     group by merchant_id, currency, account
), closed as (
    select merchant_id, currency, account, amount
      from balance_closing
     where :merchant_id::bigint is null or merchant_id = :merchant_id
)
select 'balance_closing' as table_name, merchant_id, account || ' ' || currency as id,
       format('keeps %s, but the entries sum to %s', coalesce(c.amount, 0), coalesce(s.amount, 0)) as detail
  from summed s
  full join closed c using (merchant_id, currency, account)
 where coalesce(s.amount, 0) <> coalesce(c.amount, 0);
