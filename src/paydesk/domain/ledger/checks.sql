-- Each statement returns the rows that break one rule: their table, merchant and id, and what is wrong in words. It is
-- true of one moment, since it is one statement. A null merchant_id asks about all merchants. Parameters are bound in the
-- order in which they first appear (checking.py names them in that order).

-- name: postings_balance(merchant_id)
select 'ledger_entry' as table_name, merchant_id, min(id) as id,
       format('posting %s sums to %s %s, not to 0', posting_id, sum(amount), currency) as detail
  from ledger_entry
 where (:merchant_id::bigint is null or merchant_id = :merchant_id)
 group by merchant_id, live, posting_id, currency
having sum(amount) <> 0;

-- name: payments_posted(merchant_id)
-- A payment of 0 has nothing to post, and an account that gets 0 has no entry.
with posted as (
    select merchant_id, payment_id, count(*) as entries,
           min(posting_id) as first_posting, max(posting_id) as last_posting,
           min(currency) as currency, max(currency) as other_currency,
           coalesce(sum(amount) filter (where account = 'acquirer'), 0) as acquirer,
           coalesce(sum(amount) filter (where account = 'pending'), 0) as pending,
           coalesce(sum(amount) filter (where account = 'reserve'), 0) as reserve,
           coalesce(sum(amount) filter (where account = 'fees'), 0) as fees
      from ledger_entry
     where (:merchant_id::bigint is null or merchant_id = :merchant_id) and kind = 'capture'
     group by merchant_id, payment_id
)
select 'payment' as table_name, p.merchant_id, p.id,
       case when p.state not in ('captured', 'partially_refunded', 'refunded', 'charged_back')
                then format('is %s, but has a capture posting', p.state)
            when l.entries is null then format('is %s, but has no capture posting', p.state)
            when l.first_posting <> l.last_posting
                then format('has more than one capture posting: %s and %s', l.first_posting, l.last_posting)
            else format('has amount %s %s, net %s, reserve %s, fees %s, but posting %s says acquirer %s %s, pending %s, '
                        'reserve %s, fees %s in %s entries', p.amount, p.currency, p.net, p.reserve, p.fees,
                        l.first_posting, l.acquirer, l.currency, l.pending, l.reserve, l.fees, l.entries)
        end as detail
  from payment p
  left join posted l on l.merchant_id = p.merchant_id and l.payment_id = p.id
 where (:merchant_id::bigint is null or p.merchant_id = :merchant_id)
   and case when p.state in ('captured', 'partially_refunded', 'refunded', 'charged_back') and p.amount <> 0
            then (l.entries, l.first_posting, l.currency, l.other_currency,
                  l.acquirer, l.pending, l.reserve, l.fees)
                 is distinct from
                 (1 + (p.net <> 0)::integer + (p.reserve <> 0)::integer + (p.fees <> 0)::integer, l.last_posting,
                  p.currency, p.currency, p.amount, -p.net, -p.reserve, -p.fees)
            else l.entries is not null
        end;

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

-- name: amounts_split(merchant_id)
select 'payment' as table_name, merchant_id, id,
       format('is %s with amount %s, net %s + reserve %s + fees %s = %s, paid at %s', state, amount, net, reserve, fees,
              net + reserve + fees, coalesce(paid_at::text, 'no time')) as detail
  from payment
 where (:merchant_id::bigint is null or merchant_id = :merchant_id)
   and case when state in ('authorized', 'captured', 'partially_refunded', 'refunded', 'charged_back')
                then amount <> net + reserve + fees or paid_at is null
            when state <> 'voided' then net <> 0 or reserve <> 0 or fees <> 0 or paid_at is not null
            else false
        end;

-- name: payments_reported(merchant_id)
-- A voided payment was reported when it was authorized.
select 'payment' as table_name, p.merchant_id, p.id,
       case when g.id is null then format('is %s, but has no payment pingback', p.state)
            else format('is %s, but pingback %s reports it as paid', p.state, g.id)
        end as detail
  from payment p
  left join pingback g on g.merchant_id = p.merchant_id and g.payment_id = p.id and g.event = 'payment'
 where (:merchant_id::bigint is null or p.merchant_id = :merchant_id)
   and (g.id is null)
       = (p.state in ('authorized', 'captured', 'voided', 'partially_refunded', 'refunded', 'charged_back'))
 union all
select 'pingback', merchant_id, id, 'reports a payment, but names none'
  from pingback
 where (:merchant_id::bigint is null or merchant_id = :merchant_id) and event = 'payment' and payment_id is null;

-- name: attempts_agree(merchant_id)
-- An attempt that was given up and then approved is voided, while its payment stays open for another attempt.
with agreed (payment_state, attempt_state) as (
    values ('processing', 'processing'), ('challenged', 'challenged'), ('pending', 'pending'),
           ('declined', 'declined'), ('declined', 'failed'), ('declined', 'abandoned'), ('declined', 'voiding'),
           ('declined', 'voided'),
           ('authorized', 'approved'), ('captured', 'approved'), ('voided', 'approved'),
           ('partially_refunded', 'approved'), ('refunded', 'approved'), ('charged_back', 'approved')
)
select 'payment' as table_name, p.merchant_id, p.id,
       case when a.id is null then format('is held by attempt %s, which does not exist', p.attempt_id)
            when a.payment_id <> p.id then format('is held by attempt %s of payment %s', a.id, a.payment_id)
            else format('is %s, but its attempt %s is %s', p.state, a.id, a.state)
        end as detail
  from payment p
  left join payment_attempt a on a.merchant_id = p.merchant_id and a.id = p.attempt_id
  left join agreed s on s.payment_state = p.state and s.attempt_state = a.state
 where (:merchant_id::bigint is null or p.merchant_id = :merchant_id)
   and (a.id is null or a.payment_id <> p.id or s.payment_state is null);

-- name: approved_once(merchant_id)
select 'payment_attempt' as table_name, a.merchant_id, a.id,
       format('is approved, but payment %s (%s) is held by attempt %s', p.id, p.state, p.attempt_id) as detail
  from payment_attempt a
  join payment p on p.merchant_id = a.merchant_id and p.id = a.payment_id
 where (:merchant_id::bigint is null or a.merchant_id = :merchant_id)
   and a.state = 'approved' and p.attempt_id <> a.id;

-- name: approved_amounts(merchant_id)
select 'payment_attempt' as table_name, a.merchant_id, a.id,
       format('is approved for %s %s, but payment %s is of %s %s', a.amount, a.currency, p.id, p.amount, p.currency)
           as detail
  from payment_attempt a
  join payment p on p.merchant_id = a.merchant_id and p.id = a.payment_id
 where (:merchant_id::bigint is null or a.merchant_id = :merchant_id)
   and a.state = 'approved' and (a.amount, a.currency) is distinct from (p.amount, p.currency);

-- name: modes_apart(merchant_id)
with mixed as (
    select 'payment_attempt' as table_name, a.merchant_id, a.id, a.live, 'payment' as other, p.id as other_id
      from payment_attempt a
      join payment p on p.merchant_id = a.merchant_id and p.id = a.payment_id and p.live <> a.live
     union all
    select 'ledger_entry', l.merchant_id, l.id, l.live, 'payment', p.id
      from ledger_entry l
      join payment p on p.merchant_id = l.merchant_id and p.id = l.payment_id and p.live <> l.live
     union all
    select 'movement', v.merchant_id, v.id, v.live, 'payment', p.id
      from movement v
      join payment p on p.merchant_id = v.merchant_id and p.id = v.payment_id and p.live <> v.live
     union all
    select 'chargeback', c.merchant_id, c.id, c.live, 'payment', p.id
      from chargeback c
      join payment p on p.merchant_id = c.merchant_id and p.id = c.payment_id and p.live <> c.live
     union all
    select 'delivery', d.merchant_id, d.id, d.live, 'payment', p.id
      from delivery d
      join payment p on p.merchant_id = d.merchant_id and p.id = d.payment_id and p.live <> d.live
     union all
    select 'pingback', g.merchant_id, g.id, g.live, 'payment', p.id
      from pingback g
      join payment p on p.merchant_id = g.merchant_id and p.id = g.payment_id and p.live <> g.live
     union all
    select 'pingback_attempt', t.merchant_id, t.id, t.live, 'pingback', g.id
      from pingback_attempt t
      join pingback g on g.merchant_id = t.merchant_id and g.id = t.pingback_id and g.live <> t.live
     union all
    select 'customer', u.merchant_id, u.id, u.live, 'payment', p.id
      from payment p
      join customer u on u.merchant_id = p.merchant_id and u.id = p.customer_id and u.live <> p.live
     union all
    select 'card', d.merchant_id, d.id, d.live, 'payment_attempt', a.id
      from payment_attempt a
      join card d on d.merchant_id = a.merchant_id and d.id = a.card_id and d.live <> a.live
     union all
    select 'card', d.merchant_id, d.id, d.live, 'payment', p.id
      from payment p
      join card d on d.merchant_id = p.merchant_id and d.id = p.card_id and d.live <> p.live
     union all
    select 'checkout', c.merchant_id, c.id, c.live, 'payment', p.id
      from payment p
      join checkout c on c.merchant_id = p.merchant_id and c.id = p.checkout_id and c.live <> p.live
     union all
    select 'checkout', c.merchant_id, c.id, c.live, 'payment_attempt', a.id
      from payment_attempt a
      join checkout c on c.merchant_id = a.merchant_id and c.id = a.checkout_id and c.live <> a.live
     union all
    select 'subscription', s.merchant_id, s.id, s.live, 'payment', p.id
      from subscription s
      join payment p on p.merchant_id = s.merchant_id and p.subscription_id = s.id and p.live <> s.live
     union all
    select 'subscription', s.merchant_id, s.id, s.live, 'package_version', v.id
      from subscription s
      join package_version v on v.merchant_id = s.merchant_id and v.id = s.package_version_id and v.live <> s.live
     union all
    select 'card', d.merchant_id, d.id, d.live, 'subscription', s.id
      from subscription s
      join card d on d.merchant_id = s.merchant_id and d.id = s.card_id and d.live <> s.live
     union all
    select 'pingback', g.merchant_id, g.id, g.live, 'subscription', s.id
      from pingback g
      join subscription s on s.merchant_id = g.merchant_id and s.id = g.subscription_id and s.live <> g.live
)
select table_name, merchant_id, id,
       format('is %s, but %s %s is not', case when live then 'live' else 'test' end, other, other_id) as detail
  from mixed
 where (:merchant_id::bigint is null or merchant_id = :merchant_id)
 union all
select 'payment_attempt', merchant_id, id, 'is live, but was made at the simulated bank'
  from payment_attempt
 where (:merchant_id::bigint is null or merchant_id = :merchant_id) and live and acquirer = 'simulator';

-- name: parents_exist(merchant_id)
-- What no foreign key watches, since a trigger per row is dear: the statement that writes such a row has its parent in hand.
with orphan as (
    select 'payment' as table_name, p.merchant_id, p.id, 'customer' as parent, p.customer_id as parent_id
      from payment p
      left join customer u on u.merchant_id = p.merchant_id and u.id = p.customer_id
     where u.id is null
     union all
    select 'payment', p.merchant_id, p.id, 'card', p.card_id
      from payment p
      left join card d on d.merchant_id = p.merchant_id and d.id = p.card_id
     where d.id is null
     union all
    select 'payment_attempt', a.merchant_id, a.id, 'payment', a.payment_id
      from payment_attempt a
      left join payment p on p.merchant_id = a.merchant_id and p.id = a.payment_id
     where p.id is null
     union all
    select 'payment_attempt', a.merchant_id, a.id, 'card', a.card_id
      from payment_attempt a
      left join card d on d.merchant_id = a.merchant_id and d.id = a.card_id
     where d.id is null
     union all
    select 'ledger_entry', l.merchant_id, l.id, 'payment', l.payment_id
      from ledger_entry l
      left join payment p on p.merchant_id = l.merchant_id and p.id = l.payment_id
     where l.payment_id is not null and p.id is null
     union all
    select 'pingback', g.merchant_id, g.id, 'payment', g.payment_id
      from pingback g
      left join payment p on p.merchant_id = g.merchant_id and p.id = g.payment_id
     where g.payment_id is not null and p.id is null
     union all
    select 'pingback', g.merchant_id, g.id, 'subscription', g.subscription_id
      from pingback g
      left join subscription s on s.merchant_id = g.merchant_id and s.id = g.subscription_id
     where g.subscription_id is not null and s.id is null
     union all
    select 'checkout', c.merchant_id, c.id, 'merchant_key', c.key_id
      from checkout c
      left join merchant_key k on k.merchant_id = c.merchant_id and k.id = c.key_id
     where k.id is null
     union all
    select 'customer', u.merchant_id, u.id, 'merchant', u.merchant_id
      from customer u
      left join merchant m on m.id = u.merchant_id
     where m.id is null
     union all
    select 'card', d.merchant_id, d.id, 'merchant', d.merchant_id
      from card d
      left join merchant m on m.id = d.merchant_id
     where m.id is null
)
select table_name, merchant_id, id, format('is of %s %s, which does not exist', parent, parent_id) as detail
  from orphan
 where :merchant_id::bigint is null or merchant_id = :merchant_id;

-- name: pingbacks_follow(merchant_id, log_kept_since, most_attempts)
-- Attempts are forgotten after a time, so that only younger pingbacks can be compared with them.
with logged as (
    select merchant_id, pingback_id, count(*) as attempts,
           bool_or(status = 200 and response_body ~* '^\s*ok\s*$') as answered_ok
      from pingback_attempt
     where (:merchant_id::bigint is null or merchant_id = :merchant_id)
     group by merchant_id, pingback_id
)
select 'pingback' as table_name, g.merchant_id, g.id,
       case when g.attempts <> coalesce(l.attempts, 0)
                then format('counts %s attempts, but %s are recorded', g.attempts, coalesce(l.attempts, 0))
            when g.state = 'acknowledged' and not coalesce(l.answered_ok, false)
                then 'is acknowledged, but no attempt was answered with 200 and ok'
            else format('is %s after %s attempts, finished at %s', g.state, g.attempts,
                        coalesce(g.finished_at::text, 'no time'))
        end as detail
  from pingback g
  left join logged l on l.merchant_id = g.merchant_id and l.pingback_id = g.id
 where (:merchant_id::bigint is null or g.merchant_id = :merchant_id)
   and g.created_at >= :log_kept_since
   and (g.attempts <> coalesce(l.attempts, 0)
        or g.state = 'acknowledged' and not coalesce(l.answered_ok, false)
        or g.state = 'waiting' and g.attempts > 0
        or g.state = 'exhausted' and g.attempts < :most_attempts
        or (g.finished_at is null) = (g.state in ('acknowledged', 'exhausted')));

-- name: outcomes_known(merchant_id, opened_before)
select 'payment_attempt' as table_name, merchant_id, id,
       case when lookup_at is null then format('is %s, but nobody will look after it', state)
            else format('is %s since %s', state, created_at)
        end as detail
  from payment_attempt
 where (:merchant_id::bigint is null or merchant_id = :merchant_id)
   and state in ('processing', 'challenged', 'voiding')
   and (created_at < :opened_before or lookup_at is null)
 union all
-- A pending payment has as long as its method takes, by its shop's own time.
select 'payment_attempt', a.merchant_id, a.id,
       case when a.lookup_at is null then 'is pending, but nobody will look after it'
            else format('is pending, and was to be sure by %s', coalesce(h.sure_by, a.sure_by))
        end
  from payment_attempt a
  join merchant m on m.id = a.merchant_id
  left join hosted_page h on h.merchant_id = a.merchant_id and h.live = a.live and h.attempt_id = a.id
 where (:merchant_id::bigint is null or a.merchant_id = :merchant_id)
   and a.state = 'pending'
   and (a.lookup_at is null
        or coalesce(h.sure_by, a.sure_by) - side_clock(a.live, m.test_clock) < :opened_before)
 union all
-- Captures, voids and refunds have their shop's own time.
select 'movement', m.merchant_id, m.id, format('is a %s that is %s since %s', m.kind, m.state, m.created_at)
  from movement m
  join merchant s on s.id = m.merchant_id
 where (:merchant_id::bigint is null or m.merchant_id = :merchant_id)
   and m.state = 'processing'
   and m.created_at - side_clock(m.live, s.test_clock) < :opened_before;

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

-- name: periods_paid(merchant_id)
-- Before next_period every period is paid, once; for next_period there is at most one payment, not paid yet.
with charged as (
    select merchant_id, subscription_id, count(*) as payments, count(distinct period_number) as periods,
           min(period_number) as first_period,
           max(period_number) as last_period, count(*) filter (where paid_at is not null) as paid,
           max(period_number) filter (where paid_at is not null) as last_paid
      from payment
     where (:merchant_id::bigint is null or merchant_id = :merchant_id) and subscription_id is not null
     group by merchant_id, subscription_id
)
select 'subscription' as table_name, s.merchant_id, s.id,
       format('charges period %s next, but has %s payments for %s periods from %s to %s, %s paid until %s',
              s.next_period, coalesce(c.payments, 0), coalesce(c.periods, 0), c.first_period, c.last_period,
              coalesce(c.paid, 0), c.last_paid) as detail
  from subscription s
  join package_version v on v.merchant_id = s.merchant_id and v.id = s.package_version_id
  left join charged c on c.merchant_id = s.merchant_id and c.subscription_id = s.id
 where (:merchant_id::bigint is null or s.merchant_id = :merchant_id)
   and (c.payments is null
        or c.first_period <> (v.trial_length = 0)::integer
        or c.last_paid is distinct from s.next_period - 1
        or c.paid <> s.next_period - c.first_period
        or c.payments <> c.periods
        or c.last_period > s.next_period
        or v.payment_limit > 0 and c.last_period > v.payment_limit)
 union all
select 'payment', p.merchant_id, p.id, format('is for subscription %s, which does not exist', p.subscription_id)
  from payment p
  left join subscription s on s.merchant_id = p.merchant_id and s.id = p.subscription_id
 where (:merchant_id::bigint is null or p.merchant_id = :merchant_id)
   and p.subscription_id is not null and s.id is null;

-- name: counters_agree(merchant_id)
with charged as (
    select merchant_id, subscription_id, count(*) filter (where paid_at is not null) as paid,
           count(*) filter (where paid_at is not null and period_number > 0) as regular, max(paid_at) as last_paid_at
      from payment
     where (:merchant_id::bigint is null or merchant_id = :merchant_id) and subscription_id is not null
     group by merchant_id, subscription_id
)
select 'subscription' as table_name, s.merchant_id, s.id,
       format('counts %s payments, %s of them regular, the last at %s, but %s, %s and %s are true', s.paid_number_counter,
              s.counter, s.date_paid, coalesce(c.paid, 0), coalesce(c.regular, 0), c.last_paid_at) as detail
  from subscription s
  left join charged c on c.merchant_id = s.merchant_id and c.subscription_id = s.id
 where (:merchant_id::bigint is null or s.merchant_id = :merchant_id)
   and (s.paid_number_counter, s.counter, s.date_paid) is distinct from (c.paid, c.regular, c.last_paid_at)
 union all
select 'subscription_package', k.merchant_id, k.id,
       format('counts %s subscriptions, but has %s', k.subscriptions_count, count(s.id))
  from subscription_package k
  left join package_version v on v.merchant_id = k.merchant_id and v.package_id = k.id
  left join subscription s on s.merchant_id = v.merchant_id and s.package_version_id = v.id
 where (:merchant_id::bigint is null or k.merchant_id = :merchant_id)
 group by k.merchant_id, k.id, k.subscriptions_count
having k.subscriptions_count <> count(s.id)
 union all
select 'package_version', v.merchant_id, v.id,
       format('counts %s subscriptions, but has %s', v.subscriptions_count, count(s.id))
  from package_version v
  left join subscription s on s.merchant_id = v.merchant_id and s.package_version_id = v.id
 where (:merchant_id::bigint is null or v.merchant_id = :merchant_id)
 group by v.merchant_id, v.id, v.subscriptions_count
having v.subscriptions_count <> count(s.id);

-- name: subscriptions_stand(merchant_id)
-- Its dates say what its state says; what runs has a next date, runs out its last period, or has an open change and no
-- date; a charge in flight is the open attempt of the period that is charged next.
select 'subscription' as table_name, s.merchant_id, s.id,
       format('is %s with %s regular payments, next %s, end %s, expired %s, cancelled %s, stopped %s, in flight %s (%s)',
              s.state, s.counter, s.date_next, s.date_end, s.date_expired, s.date_cancelled, s.date_stopped,
              s.charging_attempt_id, coalesce(a.state, 'none')) as detail
  from subscription s
  join package_version v on v.merchant_id = s.merchant_id and v.id = s.package_version_id
  left join payment_attempt a on a.merchant_id = s.merchant_id and a.id = s.charging_attempt_id
  left join payment p on p.merchant_id = a.merchant_id and p.id = a.payment_id
 where (:merchant_id::bigint is null or s.merchant_id = :merchant_id)
   and (s.state = 'Trial' and (v.trial_length = 0 or s.counter > 0 or s.date_next is null and s.change_id is null)
        or s.state = 'Active'
           and (s.counter = 0 or s.change_id is null and (s.date_next is null) <> (s.date_end is not null))
        or s.change_id is not null
           and (s.date_next is not null or s.date_end is not null or s.state not in ('Trial', 'Active'))
        or (s.state in ('Cancelled', 'Expired')) and s.date_next is not null
        or (s.state = 'Cancelled') <> (s.date_cancelled is not null)
        or (s.state = 'Expired') <> (s.date_expired is not null)
        or s.state = 'Expired' and s.date_end is null
        or s.date_stopped is not null and (s.state <> 'Cancelled' or s.cancelled_by <> 'retries')
        or (s.date_active is not null) <> (s.counter > 0)
        or s.charging_attempt_id is not null
           and (coalesce(a.state in ('processing', 'pending'), false), p.subscription_id, p.period_number, p.attempt_id)
               is distinct from (true, s.id, s.next_period, a.id)
        or s.charging_attempt_id is null
           and exists (select
                         from payment open
                        where open.merchant_id = s.merchant_id and open.live = s.live and open.subscription_id = s.id
                          and open.state in ('processing', 'pending')));

-- name: dunning_kept(merchant_id, most_tries)
-- A charge that fails by a plan counts its failures there, has fewer tries to come than the plan had, each failure has
-- a declined attempt, and none of a subscription that has been stopped came after that.
select 'subscription' as table_name, s.merchant_id, s.id,
       format('failed %s times, by its attempts %s, by its plan of %s tries %s with %s to come', s.failures, n.declined,
              s.dunning ->> 'tries', s.dunning ->> 'failures', jsonb_array_length(s.dunning -> 'left')) as detail
  from subscription s
 cross join lateral (
     select count(*) as declined, max(a.created_at) as last_at
       from payment p
       join payment_attempt a on a.merchant_id = p.merchant_id and a.live = p.live and a.payment_id = p.id
      where p.merchant_id = s.merchant_id and p.live = s.live and p.subscription_id = s.id
        and p.period_number = s.next_period and a.state = 'declined'
        and a.decline_reason not in ('too_late', 'request_refused')
 ) n
 where (:merchant_id::bigint is null or s.merchant_id = :merchant_id) and s.dunning is not null
   and (s.failures is distinct from (s.dunning ->> 'failures')::integer
        or (s.dunning ->> 'tries')::integer not between 1 and :most_tries::integer
        or jsonb_array_length(s.dunning -> 'left') >= (s.dunning ->> 'tries')::integer
        or s.failures > n.declined
        or s.date_stopped < n.last_at);

-- name: changes_agree(merchant_id)
-- The open change of a subscription is the one that it waits for; a cancellation that was carried out has ended it, then.
-- Nothing is charged while a change is open, nor after one has ended it, but for what the clocks of two machines differ.
select 'subscription' as table_name, s.merchant_id, s.id,
       format('waits for change %s, but %s', s.change_id, coalesce('change ' || c.id || ' is open', 'none is open'))
           as detail
  from subscription s
  left join subscription_change c
    on c.merchant_id = s.merchant_id and c.live = s.live and c.subscription_id = s.id and c.state = 'open'
 where (:merchant_id::bigint is null or s.merchant_id = :merchant_id)
   and (s.change_id is not null or c.id is not null) and s.change_id is distinct from c.id
 union all
select 'subscription_change', c.merchant_id, c.id,
       format('ended subscription %s at %s, which is %s, cancelled at %s', c.subscription_id, c.due_at, s.state,
              s.date_cancelled)
  from subscription_change c
  join subscription s on s.merchant_id = c.merchant_id and s.live = c.live and s.id = c.subscription_id
 where (:merchant_id::bigint is null or c.merchant_id = :merchant_id) and c.type = 'cancel' and c.state = 'done'
   and (s.state <> 'Cancelled' or s.date_cancelled is distinct from c.due_at or s.cancelled_by <> c.asked_by)
 union all
-- A plan that was changed is charged by its terms from the first period on that it was changed for.
select 'subscription_change', c.merchant_id, c.id,
       format('brought subscription %s to plan %s at %s from period %s on, but payment %s for period %s is of %s',
              c.subscription_id, c.package_version_id, v.price, c.period_number, p.id, p.period_number, p.amount)
  from subscription_change c
  join package_version v on v.merchant_id = c.merchant_id and v.live = c.live and v.id = c.package_version_id
  join payment p on p.merchant_id = c.merchant_id and p.live = c.live and p.subscription_id = c.subscription_id
   and p.period_number >= c.period_number
 where (:merchant_id::bigint is null or c.merchant_id = :merchant_id) and c.type = 'change' and c.state = 'done'
   and (p.amount, p.currency) is distinct from (v.price, v.currency)
   and not exists (select
                     from subscription_change later
                    where later.merchant_id = c.merchant_id and later.live = c.live
                      and later.subscription_id = c.subscription_id and later.type = 'change'
                      and later.state = 'done' and later.id > c.id and later.period_number <= p.period_number)
 union all
select 'subscription_change', c.merchant_id, c.id,
       format('brought subscription %s to plan %s, but it is on %s', c.subscription_id, c.package_version_id,
              s.package_version_id)
  from subscription_change c
  join subscription s on s.merchant_id = c.merchant_id and s.live = c.live and s.id = c.subscription_id
 where (:merchant_id::bigint is null or c.merchant_id = :merchant_id) and c.type = 'change' and c.state = 'done'
   and s.package_version_id <> c.package_version_id
   and not exists (select
                     from subscription_change later
                    where later.merchant_id = c.merchant_id and later.live = c.live
                      and later.subscription_id = c.subscription_id and later.type = 'change'
                      and later.state = 'done' and later.id > c.id)
 union all
select 'subscription_change', c.merchant_id, c.id,
       format('brings subscription %s to plan %s, which its side does not have', c.subscription_id,
              c.package_version_id)
  from subscription_change c
  left join package_version v on v.merchant_id = c.merchant_id and v.live = c.live and v.id = c.package_version_id
 where (:merchant_id::bigint is null or c.merchant_id = :merchant_id) and c.package_version_id is not null
   and v.id is null
 union all
select 'subscription_change', c.merchant_id, c.id,
       format('(%s) kept subscription %s from being charged from %s to %s, but it was charged at %s', c.type,
              c.subscription_id, c.since, c.finished_at, a.created_at)
  from subscription_change c
  join payment p on p.merchant_id = c.merchant_id and p.live = c.live and p.subscription_id = c.subscription_id
  join payment_attempt a on a.merchant_id = p.merchant_id and a.live = p.live and a.payment_id = p.id
 where (:merchant_id::bigint is null or c.merchant_id = :merchant_id) and p.renewal
   and a.created_at > c.since + interval '5 minutes'
   and (a.created_at < coalesce(c.finished_at, 'infinity') - interval '5 minutes'
        or c.type = 'cancel' and c.state = 'done');

-- name: ends_reported(merchant_id)
-- An expiry is told only if the account asks for it.
select 'subscription' as table_name, s.merchant_id, s.id,
       format('is %s (stopped %s), but %s', s.state, s.date_stopped,
              coalesce(g.event || ' is reported by pingback ' || g.id, 'no pingback reports that')) as detail
  from subscription s
  left join pingback g
    on g.merchant_id = s.merchant_id and g.subscription_id = s.id
   and g.event in ('subscription_cancelled', 'subscription_stopped', 'subscription_expired')
 where (:merchant_id::bigint is null or s.merchant_id = :merchant_id)
   and case s.state
       when 'Cancelled' then g.event is distinct from
           case when s.date_stopped is null then 'subscription_cancelled' else 'subscription_stopped' end
       when 'Expired' then g.event <> 'subscription_expired'
       else g.id is not null
       end;

-- name: numbers_needed(merchant_id)
select 'card' as table_name, merchant_id, id, 'has its number, and nothing needs it' as detail
  from card_number_spare
 where :merchant_id::bigint is null or merchant_id = :merchant_id
 union all
select 'card', s.merchant_id, s.card_id, format('is charged for %s subscriptions', count(*))
  from subscription s
 where (:merchant_id::bigint is null or s.merchant_id = :merchant_id)
   and (s.date_next is not null or s.change_id is not null)
 group by s.merchant_id, s.card_id
having count(*) > 1;
