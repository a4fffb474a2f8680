-- name: standbys()^
-- The server's standbys, and whether commits wait for them.
select current_setting('synchronous_commit') in ('on', 'remote_apply') as commits_wait, count(*) as standbys,
       count(*) filter (where sync_state in ('sync', 'quorum')) as synchronous,
       count(*) filter (where state is null) as hidden, current_user as role,
       current_setting('client_min_messages') <> 'error' as warns
  from pg_stat_replication;
