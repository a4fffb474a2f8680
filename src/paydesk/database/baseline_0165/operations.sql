-- Operations: who works and by what clock, and our books beside the acquirers' own lists.

-- Who does the background work. Losing it in a crash costs nothing, so it writes no log.
create unlogged table worker_seen (
    name text primary key,
    started_at timestamptz not null,
    seen_at timestamptz not null
) with (fillfactor = 50);
comment on table worker_seen is 'each worker says every few seconds that it is alive; those that went are forgotten';

-- Losing it in a crash costs nothing, so it writes no log.
create unlogged table clock_reading (
    process text primary key,
    ahead_seconds double precision not null,
    read_at timestamptz not null
) with (fillfactor = 50);
comment on table clock_reading is
    'how far each process''s clock is ahead of the database''s (negative: behind), by database time';

-- To what time an acquirer's own list was compared with our books, and what came of it.
create table reconciliation (
    acquirer text primary key,
    read_to timestamptz,
    ended_at timestamptz,
    leased_until timestamptz,
    differences integer not null default 0
);
comment on column reconciliation.read_to is 'real time: what was made before agrees, or is an alarm';
comment on column reconciliation.ended_at is
    'database time: when the last reading ended, whether it came to its end or not';

-- Purchases that an acquirer has and our books don't, and that were given back whole: committed before the acquirer is
-- asked.
create table purchase_given_back (
    acquirer text not null,
    idempotency_key text not null,
    reference text not null,
    merchant_order_id text not null,
    amount numeric(20, 4) not null,
    currency text not null,
    requested_by text not null,
    state text not null check (state in ('processing', 'done', 'refused')),
    refusal text not null default '',
    created_at timestamptz not null,
    finished_at timestamptz,
    primary key (acquirer, idempotency_key),
    check ((state = 'processing') = (finished_at is null))
);
comment on table purchase_given_back is
    'whose payment nobody has: paid twice after our database forgot, or of a merchant that it forgot';

-- Ids that were given out before they were forgotten are given to nobody else: their sequence is drawn from until it is
-- past the one that is given (and not set, which could undo what others draw meanwhile). Those of payments and
-- subscriptions go in tens, those of captures, voids, refunds and chargebacks one by one.
create function pass_id(of_sequence regclass, given bigint) returns bigint
    language sql volatile
    return (select count(nextval(of_sequence))
              from pg_sequence s
             cross join generate_series(1, least((given - coalesce(pg_sequence_last_value(of_sequence),
                                                                   s.seqstart - s.seqincrement) + s.seqincrement - 1)
                                                 / s.seqincrement, 1000000))
             where s.seqrelid = of_sequence);
comment on function pass_id is 'draws a million ids at most: no database forgets more';
