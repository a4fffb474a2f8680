-- oldest code: 150
-- Code of before closed an empty ledger up to the id that its sequence gives out first, so that the entry which got that id
-- is in no kept sum: the first one of a database, or of a range of ids. The sums of whoever has such an entry are made
-- anew. Nobody closes the ledger further meanwhile; only the next statement sees all that is closed.
select from ledger_horizon for update;

insert into balance_closing as c (merchant_id, live, currency, account, amount)
select m.id, true, e.currency, e.account, e.amount
  from ledger_horizon h
 cross join merchant m
 cross join lateral (
     select currency, account, sum(amount) as amount
       from ledger_entry
      where merchant_id = m.id and live and id <= h.closed_id and account in ('pending', 'available', 'reserve')
      group by currency, account
 ) e
 where exists (select
                 from generate_series(1, h.closed_id, 10000000000000) first (id)
                where exists (select from ledger_posting p where p.merchant_id = m.id and p.id = first.id)
                   or exists (select from ledger_entry_before b where b.merchant_id = m.id and b.id = first.id))
    on conflict (merchant_id, live, currency, account) do update
       set amount = excluded.amount
     where c.amount <> excluded.amount;
