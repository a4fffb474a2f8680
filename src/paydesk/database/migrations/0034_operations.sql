-- What an operator's lists read across all merchants.

alter table payout add column request_key text;
comment on column payout.request_key is 'names one wish to record a payout: however often its form comes, it counts once';
create unique index payout_by_request on payout (merchant_id, live, request_key) where request_key is not null;
-- Serves the list of all merchants' payouts, newest first; few are ever written.
create index payout_of_all on payout (live, at, id);

-- Serve the list of all merchants' chargebacks, newest first, of all states or of one; few are ever written.
create index chargeback_of_all on chargeback (live, opened_at, id);
create index chargeback_of_state on chargeback (live, state, opened_at, id);

-- Serves who has how much available. Only what settles, is paid out or is given back writes to this account: the worker
-- pays for it, no customer waits.
create index ledger_entry_available on ledger_entry (merchant_id, live, currency) include (amount)
    where account = 'available';

-- Serves an acquirer's health: the attempts of the last hours, in real time (a test clock runs ahead of created_at). One
-- entry for every 128 pages, so that a payment pays next to nothing for it.
create index payment_attempt_lately on payment_attempt using brin (not_after) with (autosummarize = on);

-- Who does the background work. Losing it in a crash costs nothing, so it writes no log.
create unlogged table worker_seen (
    name text primary key,
    started_at timestamptz not null,
    seen_at timestamptz not null
) with (fillfactor = 50);
comment on table worker_seen is 'each worker says every few seconds that it is alive; those that went are forgotten';
