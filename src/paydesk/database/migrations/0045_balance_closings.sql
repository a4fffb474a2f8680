-- Balances of merchants with millions of entries are read in a moment: what is old is summed once.

create table ledger_horizon (
    single boolean primary key default true check (single),
    closed_id bigint not null default 0,
    seen_id bigint not null default 0,
    seen_before xid8 not null default '0',
    seen_at timestamptz not null default '-infinity'
);
comment on table ledger_horizon is 'one row: how far the live ledger is closed, and what the last look at it saw';
comment on column ledger_horizon.closed_id is 'the newest ledger entry that the closings contain';
comment on column ledger_horizon.seen_id is 'the newest id that was given to an entry; closed once all that were writing then have ended';
comment on column ledger_horizon.seen_before is 'every transaction that was writing at the look is older than this';
insert into ledger_horizon default values;

create table balance_closing (
    merchant_id bigint not null,
    live boolean not null check (live),
    currency text not null,
    account text not null check (account in ('pending', 'available', 'reserve')),
    amount numeric(20, 4) not null,
    primary key (merchant_id, live, currency, account)
);
comment on table balance_closing is 'sums of a merchant''s live ledger entries up to ledger_horizon.closed_id';
comment on column balance_closing.live is 'test sides have none: their entries may be deleted by a reset';
