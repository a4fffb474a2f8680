-- oldest code: 150
-- How much each queue has to do is counted by one for all: what a backlog of a million costs to count, each worker and
-- each open page of the console would cost otherwise. Unlogged: after a crash it is counted anew.
create unlogged table queue_depth (
    name text primary key,
    due bigint not null,
    oldest_at timestamptz,
    in_hand bigint not null
);
comment on table queue_depth is 'what each queue had to do when it was last counted';
comment on column queue_depth.oldest_at is 'since when the oldest waits, in real time; null if nothing does';
comment on column queue_depth.in_hand is 'how much of it was in a worker''s hands';

create unlogged table queue_count (
    one boolean primary key default true check (one),
    counted_at timestamptz not null default '-infinity',
    counted bigint not null default 0
);
comment on table queue_count is 'one row: when all queues were last counted; whoever counts them holds it';
comment on column queue_count.counted is 'how much was due in all: the more, the longer until it is counted again';
