-- name: claim(acquirer, lease, every, now)^
-- One worker at a time reads an acquirer's balance, and not again before its time; leases are in database time.
insert into balance_reading as r (acquirer, began_at, leased_until)
select :acquirer::text, :now::timestamptz, clock_timestamp() + :lease::interval
 where :acquirer::text <> all (accounts_left_alone(true))
    on conflict (acquirer) do update
       set leased_until = excluded.leased_until
     where (r.leased_until is null or r.leased_until < clock_timestamp())
       and (r.ended_at is null or r.ended_at < clock_timestamp() - :every::interval)
returning began_at, read_to, leased_until;

-- name: hold(acquirer, held, lease)$
-- Whoever has the lease that it was given (until `held`) has it for longer, and nobody else gets it, or takes the account
-- elsewhere, before the transaction that this is in has ended. No row: it is another's, or the account is not here any more.
update balance_reading
   set leased_until = clock_timestamp() + :lease::interval
 where acquirer = :acquirer and leased_until = :held
returning leased_until;

-- name: read_up_to(acquirer, read_to)!
-- All that the list had is entered by the transaction that this is in.
update balance_reading set read_to = greatest(read_to, :read_to::timestamptz) where acquirer = :acquirer;

-- name: end(acquirer, held)!
update balance_reading
   set leased_until = null, ended_at = clock_timestamp()
 where acquirer = :acquirer and leased_until = :held;

-- name: stands(acquirers, now)
-- How old what was read of each acquirer's balance is, in seconds, and how many findings are open.
select r.acquirer, extract(epoch from :now::timestamptz - coalesce(r.read_to, r.began_at))::double precision as age,
       (select count(*)
          from proceeds_finding f
         where f.acquirer = r.acquirer and f.settled_at is null and f.accepted_at is null) as findings
  from balance_reading r
 where r.acquirer = any(:acquirers::text[]) and r.acquirer <> all (accounts_left_alone(true));
