-- oldest code: 150
-- How much each queue has to do is counted by one for all: what a backlog of a million costs to count, each worker and
-- each open page of the console would cost otherwise. Unlogged: after a crash it is counted anew.
create unlogged table queue_depth (
    name text primary key,
    due bigint not null,
    oldest_at timestamptz,
    in_hand bigint not null,
    counted_at timestamptz not null,
    seen_at timestamptz not null
);
comment on table queue_depth is 'what each queue had to do when it was last counted';
comment on column queue_depth.oldest_at is 'since when the oldest waits, in real time; null if nothing does';
comment on column queue_depth.in_hand is 'how much of it was in a worker''s hands';
comment on column queue_depth.counted_at is 'the time by which it was due, by the clock of whoever counted';
comment on column queue_depth.seen_at is 'from when it was seen, by the clock of the database: the newest stays';

create unlogged table queue_count (
    one boolean primary key default true check (one),
    begun_at timestamptz not null,
    ended_at timestamptz not null default '-infinity',
    took interval not null default '0',
    counted bigint not null default 0
);
comment on table queue_count is 'one row: when somebody began to count all queues, and how long the last count took';
comment on column queue_count.ended_at is 'before begun_at while a count is under way, or was left';
comment on column queue_count.counted is 'how much was due in all';
