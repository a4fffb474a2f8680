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
-- A payment that customer and card are to name is of theirs, or nobody who looks for them would find it.
with orphan as (
    select 'payment' as table_name, p.merchant_id, p.id, 'customer' as parent, p.customer_id as parent_id
      from payment p
      left join customer u
        on u.merchant_id = p.merchant_id and u.id = p.customer_id
       and (p.people_of is distinct from p.attempt_id or u.payment_id = p.id)
     where u.id is null
     union all
    select 'payment', p.merchant_id, p.id, 'card', p.card_id
      from payment p
      left join card d
        on d.merchant_id = p.merchant_id and d.id = p.card_id
       and (p.people_of is distinct from p.attempt_id or d.payment_id = p.id)
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
select table_name, merchant_id, id, format('is of %s %s, which does not exist or is not of it', parent, parent_id) as detail
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
