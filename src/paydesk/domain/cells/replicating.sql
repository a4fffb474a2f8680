-- name: wal_level()$
select current_setting('wal_level');

-- name: is_published()$
select exists (select from pg_publication where pubname = 'paydesk_directory');

-- name: publish()!
create publication paydesk_directory for table cell, directory;

-- name: slots()
-- The lag in seconds is that of the last change that was brought; nothing is known while nobody reads the slot.
select s.slot_name as name, s.active, coalesce(s.wal_status, '') = 'lost' as lost,
       pg_wal_lsn_diff(pg_current_wal_lsn(), s.confirmed_flush_lsn)::bigint as bytes_behind,
       case when s.active then coalesce(extract(epoch from r.replay_lag), 0)::float8 end as seconds_behind
  from pg_replication_slots s
  left join pg_stat_replication r on r.pid = s.active_pid
 where s.database = current_database() and s.slot_name like 'paydesk\_directory\_%'
 order by s.slot_name;

-- name: slot_of_another(name)$
-- Names of slots are a server's, not a database's.
select database from pg_replication_slots where slot_name = :name and database <> current_database();

-- name: hold_copy(number)$
-- Until the session's end; nobody waits for it. (Lock 0 is that of numbers, see adding.sql.)
select pg_try_advisory_lock('directory'::regclass::oid::integer, :number::integer + 1);

-- name: make_slot(name)$
select slot_name from pg_create_logical_replication_slot(:name, 'pgoutput');

-- name: drop_slot(name)$
select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = :name;

-- name: subscription(name)^
select s.subenabled as enabled,
       not exists (select from pg_subscription_rel r where r.srsubid = s.oid and r.srsubstate <> 'r') as copied
  from pg_subscription s
  join pg_database d on d.oid = s.subdbid
 where d.datname = current_database() and s.subname = :name;

-- name: subscribing(name, home)$
-- The statement that subscribes, with the address as a literal: it takes no parameters.
select format('create subscription %I connection %L publication paydesk_directory with (create_slot = false, slot_name = %I)',
              :name::text, :home::text, :name::text);

-- name: may_subscribe()$
-- A superuser; since PostgreSQL 16 also who is a member of a role for it, and may make things in the database.
select rolsuper
       or coalesce((select pg_has_role(r.oid, 'member') from pg_roles r where r.rolname = 'pg_create_subscription'), false)
          and has_database_privilege(current_database(), 'create')
  from pg_roles
 where rolname = current_user;

-- name: may_replicate()$
select rolsuper
       or rolreplication and has_table_privilege('cell', 'select') and has_table_privilege('directory', 'select')
          and has_column_privilege('deployment', 'tag', 'select')
  from pg_roles
 where rolname = current_user;

-- name: empty_copy()!
truncate cell, directory;
