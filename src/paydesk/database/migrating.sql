-- name: applied()
-- The steps that the schema has. By way of JSON, since a schema of long ago has no column of the oldest code, and is still
-- to be told what to do.
select number, name, coalesce((to_jsonb(m) ->> 'oldest_code')::integer, number) as oldest_code from schema_migration m;

-- name: running()
-- Every transaction under way, whoever's it is: roles that may not see others' sessions see their locks.
select a.pid, l.virtualxid,
       format('%s (pid %s%s)', coalesce(nullif(a.application_name, ''), a.usename, 'the server itself'), a.pid,
              ', for ' || round(extract(epoch from clock_timestamp() - a.xact_start)) || ' s') as words
  from pg_locks l
  join pg_stat_activity a on a.pid = l.pid
 where l.locktype = 'virtualxid' and l.granted and a.datname = current_database() and a.pid <> pg_backend_pid()
 order by a.xact_start;
