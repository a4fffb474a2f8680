-- Each process compares its clock with the database's, and sees what the others found.

-- Losing it in a crash costs nothing, so it writes no log.
create unlogged table clock_reading (
    process text primary key,
    ahead_seconds double precision not null,
    read_at timestamptz not null
) with (fillfactor = 50);
comment on table clock_reading is 'how far each process''s clock is ahead of the database''s (negative: behind), by database time';
