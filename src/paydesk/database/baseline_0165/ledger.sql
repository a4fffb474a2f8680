-- The ledger: entries, sums of what is old, payouts, and when money is posted.

create sequence ledger_posting_id_seq;
create sequence ledger_entry_id_seq;
create table ledger_entry (
    merchant_id bigint not null,
    live boolean not null,
    id bigint not null default nextval('ledger_entry_id_seq'),
    posting_id bigint not null,
    kind text not null check (kind in (
        'capture', 'settlement', 'reserve_release', 'refund', 'refund_failure', 'chargeback', 'chargeback_fee',
        'chargeback_reversal', 'payout')),
    payment_id bigint,
    account text not null check (account in ('acquirer', 'pending', 'available', 'reserve', 'fees', 'bank')),
    currency text not null,
    amount numeric(20, 4) not null check (amount <> 0),
    at timestamptz not null,
    payout_id bigint,
    primary key (merchant_id, id),
    check ((payment_id is null) = (kind = 'payout') and (payout_id is null) = (kind <> 'payout'))
);
comment on table ledger_entry is
    'append-only double entry: each posting sums to zero; debits are positive, so what Paydesk owes a merchant '
    'is negative';
create index ledger_entry_by_payment on ledger_entry (merchant_id, live, payment_id);
-- Serves statements of a period and balances; a posting's entries have the same time.
create index ledger_entry_by_time on ledger_entry (merchant_id, live, at, posting_id);
-- Serves who has how much available. Only what settles, is paid out or is given back writes to this account: the worker
-- pays for it, no customer waits.
create index ledger_entry_available on ledger_entry (merchant_id, live, currency) include (amount)
    where account = 'available';

create function refuse_change() returns trigger language plpgsql as $$
begin
    raise exception '% is append-only', tg_table_name;
end $$;

create trigger ledger_entry_is_append_only before update on ledger_entry
    for each row execute function refuse_change();

-- Test data may be deleted as a whole when a test clock is reset; live entries never.
create trigger live_ledger_entry_is_kept before delete on ledger_entry
    for each row when (old.live) execute function refuse_change();

-- When money is posted on a side whose test clock is known already: an expression, so that a statement which posts many
-- payments works it out in passing, where the function that looks the clock up is called for each entry.
create function posted_at_by(clock interval, on_live boolean, wanted timestamptz) returns timestamptz
language sql stable parallel safe as $$
    select case when on_live or clock = interval '0' then greatest(wanted, statement_timestamp()) else wanted end
$$;

create function posted_at(of_merchant bigint, on_live boolean, wanted timestamptz) returns timestamptz
language sql stable as $$
    select posted_at_by((select test_clock from merchant where id = of_merchant), on_live, wanted)
$$;

create sequence payout_id_seq;
create table payout (
    merchant_id bigint not null references merchant (id),
    live boolean not null,
    id bigint not null default nextval('payout_id_seq'),
    currency text not null,
    amount numeric(20, 4) not null check (amount > 0),
    reference text not null,
    recorded_by text not null,
    at timestamptz not null,
    request_key text,
    primary key (merchant_id, id)
);
comment on column payout.request_key is
    'names one wish to record a payout: however often its form comes, it counts once';
create index payout_by_time on payout (merchant_id, live, at, id);
create unique index payout_by_request on payout (merchant_id, live, request_key) where request_key is not null;
-- Serves the list of all merchants' payouts, newest first; few are ever written.
create index payout_of_all on payout (live, at, id);
-- Finds the payout that a reference was recorded with before: a transfer that is recorded twice counts once. Older
-- payouts may share one, so it is not unique; recording holds the merchant's row, so that no two new ones do unasked.
create index payout_by_reference on payout (merchant_id, live, reference);

create table ledger_horizon (
    single boolean primary key default true check (single),
    closed_id bigint not null default 0,
    seen_id bigint not null default 0,
    seen_before xid8 not null default '0',
    seen_at timestamptz not null default '-infinity'
);
comment on table ledger_horizon is 'one row: how far the live ledger is closed, and what the last look at it saw';
comment on column ledger_horizon.closed_id is 'the newest ledger entry that the closings contain';
comment on column ledger_horizon.seen_id is
    'the newest id that was given to an entry; closed once all have ended that had drawn ids by then';
comment on column ledger_horizon.seen_before is 'not used any more';
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

create table failed_refund_reading (
    acquirer text primary key,
    place text not null default '',
    read_at timestamptz,
    leased_until timestamptz
);
comment on table failed_refund_reading is 'how far each acquirer''s failed refunds were read; one worker at a time';
