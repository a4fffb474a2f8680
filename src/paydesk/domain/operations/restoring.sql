-- name: restored(gap)^
-- The database was put back to an earlier state: what it has given out since, it doesn't know. Ids go on behind all of that,
-- and what is sent to acquirers from now on says that it is of another epoch. Ids that go in steps keep their last digit.
with raised as (
    select setval(format('%I.%I', schemaname, sequencename)::regclass,
                  coalesce(last_value, start_value) + :gap::bigint * increment_by)
      from pg_sequences
     where schemaname = 'public'
), begun as (
    update deployment set epoch = epoch + 1 returning epoch
)
select (select count(*) from raised) as sequences, begun.epoch from begun;
