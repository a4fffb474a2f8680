-- oldest code: 150
-- A posting is a row: what a payment adds to the ledger are one row and three index entries instead of four and twelve.
-- `ledger_entry` is a view from now on, which has the entries of both; through it code of before reads postings that
-- are rows, and goes on to write entry by entry. New code reads entries through it, too, and postings from both tables.
alter table ledger_entry rename to ledger_entry_before;
comment on table ledger_entry_before is 'append-only: entries that were written one by one, before a posting was a row';

create table ledger_posting (
    merchant_id bigint not null,
    id bigint not null default nextval('ledger_entry_id_seq'),
    posting_id bigint not null,
    payment_id bigint,
    payout_id bigint,
    at timestamptz not null,
    live boolean not null,
    kind text not null check (kind in (
        'capture', 'settlement', 'reserve_release', 'refund', 'refund_failure', 'chargeback', 'chargeback_fee',
        'chargeback_reversal', 'payout')),
    currency text not null,
    acquirer numeric(20, 4) not null default 0,
    pending numeric(20, 4) not null default 0,
    available numeric(20, 4) not null default 0,
    reserve numeric(20, 4) not null default 0,
    fees numeric(20, 4) not null default 0,
    bank numeric(20, 4) not null default 0,
    primary key (merchant_id, id),
    check ((payment_id is null) = (kind = 'payout') and (payout_id is null) = (kind <> 'payout'))
);
comment on table ledger_posting is
    'append-only double entry: its accounts sum to zero; debits are positive, so what Paydesk owes a merchant '
    'is negative';
comment on column ledger_posting.id is 'from the sequence of the entries, which the closings go by';
create index ledger_posting_by_payment on ledger_posting (merchant_id, live, payment_id);
-- Serves statements of a period.
create index ledger_posting_by_time on ledger_posting (merchant_id, live, at, posting_id);

create trigger ledger_posting_is_append_only before update on ledger_posting
    for each row execute function refuse_change();
-- Test data may be deleted as a whole when a test clock is reset; live postings never.
create trigger live_ledger_posting_is_kept before delete on ledger_posting
    for each row when (old.live) execute function refuse_change();

create view ledger_entry as
select merchant_id, live, id, posting_id, kind, payment_id, account, currency, amount, at, payout_id
  from ledger_entry_before
 union all
select p.merchant_id, p.live, p.id, p.posting_id, p.kind, p.payment_id, e.account, p.currency, e.amount, p.at,
       p.payout_id
  from ledger_posting p
 cross join lateral (values ('acquirer', p.acquirer), ('pending', p.pending), ('available', p.available),
                            ('reserve', p.reserve), ('fees', p.fees), ('bank', p.bank)) as e (account, amount)
 where e.amount <> 0;
comment on view ledger_entry is 'each posting by its accounts, an entry for each that it changes';

create function ledger_entry_is_written() returns trigger language plpgsql as $$
begin
    new.id := coalesce(new.id, nextval('ledger_entry_id_seq'));
    insert into ledger_entry_before (merchant_id, live, id, posting_id, kind, payment_id, account, currency, amount, at,
                                     payout_id)
    values (new.merchant_id, new.live, new.id, new.posting_id, new.kind, new.payment_id, new.account, new.currency,
            new.amount, new.at, new.payout_id);
    return new;
end $$;
create trigger ledger_entry_is_written instead of insert on ledger_entry
    for each row execute function ledger_entry_is_written();

create function ledger_entry_is_deleted() returns trigger language plpgsql as $$
begin
    delete from ledger_entry_before where merchant_id = old.merchant_id and id = old.id;
    delete from ledger_posting where merchant_id = old.merchant_id and id = old.id;
    return old;
end $$;
create trigger ledger_entry_is_deleted instead of delete on ledger_entry
    for each row execute function ledger_entry_is_deleted();

-- From both tables at once: what is newer than the horizon, as before.
create or replace function balance_parts(of_merchant bigint, of_live boolean)
returns table (account text, currency text, amount numeric)
language sql stable parallel safe as $$
    select account, currency, amount
      from balance_closing
     where merchant_id = of_merchant and live = of_live
     union all
    select account, currency, amount
      from ledger_entry_before
     where merchant_id = of_merchant and live = of_live and account in ('pending', 'available', 'reserve')
       and id > (select case when of_live then closed_id else 0 end from ledger_horizon)
       and id <= (select 9223372036854775807)
     union all
    select e.account, p.currency, e.amount
      from ledger_posting p
     cross join lateral (values ('pending', p.pending), ('available', p.available), ('reserve', p.reserve))
        as e (account, amount)
     where p.merchant_id = of_merchant and p.live = of_live
       and p.id > (select case when of_live then closed_id else 0 end from ledger_horizon)
       and p.id <= (select 9223372036854775807) and e.amount <> 0
$$;
