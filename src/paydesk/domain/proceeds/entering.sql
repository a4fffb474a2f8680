-- name: known_lines(acquirer, lines)
-- Lines that were entered before, as they were told then.
select line as id, kind, currency, amount, fee, payout
  from balance_line
 where acquirer = :acquirer and line = any(:lines::text[]);

-- name: enter_lines(acquirer, lines, kinds, types, ats, currencies, amounts, fees, of_amounts, of_currencies, sources, purchases, keys, of_keys, ours)
-- Each line once, whoever tells it how often, with its posting in the operator's own books: the fee is a cost, a payout is
-- on its way to the bank, and what was changed into another currency goes through `exchange`, so that a posting sums to
-- zero in each. Merchants' books stay as they are: what a capture or refund is to them was posted there. Only the call
-- that really enters a line gets it back.
with told as (
    select *
      from unnest(:lines::text[], :kinds::text[], :types::text[], :ats::timestamptz[], :currencies::text[],
                  :amounts::numeric[], :fees::numeric[], :of_amounts::numeric[], :of_currencies::text[], :sources::text[],
                  :purchases::text[], :keys::text[], :of_keys::text[], :ours::boolean[])
           as t (line, kind, type, at, currency, amount, fee, of_amount, of_currency, source, purchase, key, of_key,
                 is_ours)
), entered as (
    insert into balance_line (acquirer, line, kind, type, at, currency, amount, fee, of_amount, of_currency, source,
                              purchase, key, of_key, is_ours)
    select :acquirer, line, kind, type, at, currency, amount, fee, of_amount, of_currency, source, purchase, key, of_key,
           is_ours
      from told
     order by line
        on conflict (acquirer, line) do nothing
 returning *
), posting as materialized (
    select *, nextval('operator_posting_id_seq') as posting_id from entered
), posted as (
    insert into operator_entry (posting_id, kind, acquirer, line, account, currency, amount, at)
    select p.posting_id, 'line', p.acquirer, p.line, e.account, e.currency, sum(e.amount), p.at
      from posting p
     cross join lateral (values
         ('acquirer_fees', p.currency, p.fee),
         ('acquirer', p.currency, -p.fee),
         ('acquirer', p.currency, case when p.of_amount is not null or p.kind in ('payout', 'payout_return', 'other')
                                       then p.amount end),
         ('under_way', p.currency, case when p.kind in ('payout', 'payout_return') then -p.amount end),
         ('other', p.currency, case when p.kind = 'other' and p.of_amount is null then -p.amount end),
         ('exchange', p.currency, case when p.of_amount is not null then -p.amount end),
         ('exchange', p.of_currency, p.of_amount),
         ('acquirer', p.of_currency, -p.of_amount)
     ) as e (account, currency, amount)
     where e.amount <> 0
     group by p.posting_id, p.acquirer, p.line, p.at, e.account, e.currency
    having sum(e.amount) <> 0
)
select line as id from entered;

-- name: enter_payouts(acquirer, payouts, ats, currencies, amounts, states, traced, references)
-- Each payout once, and how it stands now. Money that has come to the bank is posted when it first has, and taken back if
-- the bank gave it back after all; a state that was written is moved on by one call. (One at a time: `hold`, in reading.sql.)
with told as (
    select *
      from unnest(:payouts::text[], :ats::timestamptz[], :currencies::text[], :amounts::numeric[], :states::text[],
                  :traced::boolean[], :references::text[])
           as t (payout, at, currency, amount, state, is_traced, bank_reference)
), before as materialized (
    select b.payout, b.state
      from bank_payout b
      join told using (payout)
     where b.acquirer = :acquirer
), entered as (
    insert into bank_payout as b (acquirer, payout, at, currency, amount, state, is_traced, bank_reference)
    select :acquirer, payout, at, currency, amount, state, is_traced, bank_reference
      from told
     order by payout
        on conflict (acquirer, payout) do update
           set state = excluded.state, is_traced = b.is_traced or excluded.is_traced,
               bank_reference = excluded.bank_reference
         where (b.state, b.is_traced, b.bank_reference)
               is distinct from (excluded.state, b.is_traced or excluded.is_traced, excluded.bank_reference)
 returning b.*
), posting as materialized (
    select e.*, case when e.state = 'arrived' then 'arrival' else 'arrival_undone' end as step,
           case when e.state = 'arrived' then e.amount else -e.amount end as moved,
           nextval('operator_posting_id_seq') as posting_id
      from entered e
      left join before b using (payout)
     where e.amount <> 0 and (e.state = 'arrived') <> coalesce(b.state = 'arrived', false)
), posted as (
    insert into operator_entry (posting_id, kind, acquirer, payout, account, currency, amount, at)
    select p.posting_id, p.step, p.acquirer, p.payout, e.account, p.currency, e.amount, clock_timestamp()
      from posting p
     cross join lateral (values ('bank', p.moved), ('under_way', -p.moved)) as e (account, amount)
)
select payout as id from entered;

-- name: payouts_named(acquirer, payouts)
-- Payouts as they were told first.
select payout as reference, currency, amount from bank_payout where acquirer = :acquirer and payout = any(:payouts::text[]);

-- name: to_trace(acquirer)
-- Payouts whose lines are to be read.
select payout as reference
  from bank_payout
 where acquirer = :acquirer and is_traced and not lines_read
 order by at, payout;

-- name: place_lines(acquirer, payout, lines)!
-- Lines that a payout is of; one that is in another one stays there.
update balance_line set payout = :payout where acquirer = :acquirer and line = any(:lines::text[]) and payout is null;

-- name: all_placed(acquirer, payout)!
update bank_payout set lines_read = true where acquirer = :acquirer and payout = :payout;
