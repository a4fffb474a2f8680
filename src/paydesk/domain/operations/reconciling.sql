-- name: attempts_named(acquirer, keys)
-- The attempts behind an acquirer's keys, with how their payments stand. Keys are unique for each merchant: one index probe
-- per merchant finds each.
select a.idempotency_key as key, a.merchant_id, a.live, a.id, a.payment_id, a.state, a.amount, a.currency,
       p.attempt_id = a.id as holds, p.state as payment_state, p.refunded, p.refunding,
       p.moving_id is not null as moving,
       a.state = 'voided' and exists (select from purchase_given_back g
                                       where g.acquirer = a.acquirer and g.idempotency_key = a.idempotency_key
                                         and g.because <> '') as given_back_otherwise,
       side_clock(a.live, m.test_clock) as clock
  from merchant m
  join payment_attempt a
    on a.merchant_id = m.id and a.idempotency_key = any(:keys::text[]) and a.acquirer = :acquirer
  join payment p on p.merchant_id = a.merchant_id and p.live = a.live and p.id = a.payment_id;

-- name: card_changes_named(acquirer, keys)
-- Checks of new cards are purchases too, and no attempts.
select c.idempotency_key as key
  from merchant m
  join card_change c
    on c.merchant_id = m.id and c.idempotency_key = any(:keys::text[]) and c.acquirer = :acquirer;

-- name: movements_named(acquirer, keys)
-- The captures, voids and refunds behind an acquirer's keys.
select m.idempotency_key as key, m.merchant_id, m.payment_id, m.kind, m.state, m.amount, m.currency
  from merchant s
  join movement m on m.merchant_id = s.id and m.idempotency_key = any(:keys::text[]) and m.acquirer = :acquirer;

-- name: forgotten(acquirer, keys)
-- Which of an acquirer's keys are of test sides that were emptied since.
select idempotency_key as key
  from forgotten_attempt
 where acquirer = :acquirer and idempotency_key = any(:keys::text[]);

-- name: approved_between(acquirer, since, until)
-- Approved attempts that took or hold something, by when they were sent (real time).
select a.idempotency_key as key, a.merchant_id, a.payment_id
  from payment_attempt a
 where a.not_after between :since::timestamptz + interval '1 minute' and :until::timestamptz + interval '1 minute'
   and a.acquirer = :acquirer and a.state = 'approved' and a.amount > 0;

-- name: claim(acquirer, lease, every)^
-- One worker at a time reads an acquirer's list, and not again before its time; leases are in database time.
insert into reconciliation as r (acquirer, leased_until)
select :acquirer::text, clock_timestamp() + :lease::interval
 where :acquirer::text <> all (accounts_left_alone(true))
    on conflict (acquirer) do update
       set leased_until = excluded.leased_until
     where (r.leased_until is null or r.leased_until < clock_timestamp())
       and (r.ended_at is null or r.ended_at < clock_timestamp() - :every::interval)
returning read_to, leased_until;

-- name: hold(acquirer, held, lease)$
-- Whoever has the lease that it was given (until `held`) has it for longer, and nobody else gets it, or takes the account
-- elsewhere, before the transaction that this is in has ended. No row: it is another's, or the account is not here any more.
update reconciliation
   set leased_until = clock_timestamp() + :lease::interval
 where acquirer = :acquirer and leased_until = :held
returning leased_until;

-- name: end(acquirer, held, read_to, differences)!
-- A reading is over; a null read_to says that it did not come to its end, and is tried at its next time.
update reconciliation
   set leased_until = null, ended_at = clock_timestamp(), read_to = coalesce(:read_to, read_to),
       differences = coalesce(:differences, differences)
 where acquirer = :acquirer and leased_until = :held;

-- name: note(acquirer, since, back, read_to, differences)!
-- A reading that goes as far back as the hourly one does, and that somebody asked for: what it found is how it stands now,
-- unless a worker began after it, and has ended before; by the database's clock.
update reconciliation
   set differences = :differences
 where acquirer = :acquirer and :since::timestamptz <= read_to - :back::interval and read_to <= :read_to::timestamptz;

-- name: stands(acquirers, now)
-- To what time each acquirer's list was compared, in seconds ago, and how much differed.
select acquirer, extract(epoch from :now::timestamptz - read_to)::double precision as age, differences
  from reconciliation
 where acquirer = any(:acquirers::text[]) and read_to is not null and acquirer <> all (accounts_left_alone(true));
