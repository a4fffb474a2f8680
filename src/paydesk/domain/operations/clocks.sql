-- name: database_time()$
select clock_timestamp();

-- name: say_reading(process, ahead_seconds)!
insert into clock_reading (process, ahead_seconds, read_at)
values (:process, :ahead_seconds, clock_timestamp())
    on conflict (process) do update set ahead_seconds = excluded.ahead_seconds, read_at = excluded.read_at;

-- name: forget_readings(older_than)!
delete from clock_reading where read_at < clock_timestamp() - :older_than::interval;

-- name: readings_of_others(process, lately)
select ahead_seconds
  from clock_reading
 where process <> :process and read_at > clock_timestamp() - :lately::interval;
