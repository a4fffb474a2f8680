-- oldest code: 140
-- To what time an acquirer's own list was compared with our books, and what came of it.
create table reconciliation (
    acquirer text primary key,
    read_to timestamptz,
    ended_at timestamptz,
    leased_until timestamptz,
    differences integer not null default 0
);
comment on column reconciliation.read_to is 'real time: what was made before agrees, or is an alarm';
comment on column reconciliation.ended_at is 'database time: when the last reading ended, whether it came to its end or not';
