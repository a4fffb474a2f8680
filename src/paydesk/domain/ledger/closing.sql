-- name: closable()^
-- Up to which entry the ledger may be closed now: everybody who was writing at the last look has committed or gone, so
-- that no entry up to there can appear any more. None if there is nothing new, or somebody else is closing. Ids are
-- given before a transaction has a number of its own, hence the second look, at sessions.
select closed_id, seen_id
  from ledger_horizon h
 where seen_id > closed_id and pg_snapshot_xmin(pg_current_snapshot()) >= seen_before
   and not exists (select from pg_stat_activity
                    where datname = current_database() and backend_type = 'client backend' and xact_start <= h.seen_at)
   for update skip locked;

-- name: close_entries(closed_id, seen_id)!
-- A statement of its own, later than the one that found it closable: it sees all that had ended by then.
with sums as (
    select m.id as merchant_id, e.currency, e.account, e.amount
      from merchant m
     cross join lateral (
         select currency, account, sum(amount) as amount
           from ledger_entry
          where merchant_id = m.id and live and id > :closed_id and id <= :seen_id
            and account in ('pending', 'available', 'reserve')
          group by currency, account
     ) e
), closed as (
    insert into balance_closing as c (merchant_id, live, currency, account, amount)
    select merchant_id, true, currency, account, amount from sums
        on conflict (merchant_id, live, currency, account) do update set amount = c.amount + excluded.amount
)
update ledger_horizon set closed_id = :seen_id;

-- name: look()!
-- Note the newest id, then the time and who may still be writing: in this order, so that nobody is missed.
with newest as materialized (select last_value from ledger_entry_id_seq)
update ledger_horizon
   set seen_id = newest.last_value, seen_before = pg_snapshot_xmax(pg_current_snapshot()), seen_at = clock_timestamp()
  from newest;
