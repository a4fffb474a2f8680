-- name: closable()^
-- Up to which entry the ledger may be closed now: everybody who had drawn an id by the last look has committed or gone,
-- so that no entry up to there can appear any more. None if there is nothing new, or somebody else is closing. Who draws
-- an id holds a lock on its sequence until the transaction ends; so readers, however long they read, hold up nothing.
select closed_id, seen_id
  from ledger_horizon h
 where seen_id > closed_id
   and not exists (select
                     from pg_locks l
                     left join pg_stat_activity a on a.pid = l.pid
                    where l.relation = 'ledger_entry_id_seq'::regclass and l.mode = 'RowExclusiveLock'
                      and l.database = (select oid from pg_database where datname = current_database())
                      and coalesce(a.xact_start <= h.seen_at, true))
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
-- Note the newest id, then the time: in this order, so that nobody who has drawn one is missed. A look that is still to
-- be closed stands, however many look: else one would put off the other for ever. (A sequence that nobody has drawn from
-- says where it begins: an id that is still to be given out. Code of before took that for closed.)
with newest as materialized (
    select last_value - (not is_called)::integer as last_value from ledger_entry_id_seq
), free as materialized (
    select single from ledger_horizon where seen_id <= closed_id for update skip locked
)
update ledger_horizon h
   set seen_id = newest.last_value, seen_at = clock_timestamp(), closed_id = least(h.closed_id, newest.last_value)
  from newest, free
 where h.single = free.single;
