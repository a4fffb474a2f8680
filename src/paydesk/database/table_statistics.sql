-- name: tables_that_grew(tables, enough, times)
-- Those of these tables that have so many bytes, and so many times the pages that they had when they were last analyzed
-- or vacuumed; whether we may analyze them. A restored dump has made its indexes last, which notes the pages, too: so those
-- as well of whose values nothing is known, unless that was all there was to learn.
select c.relname as name, pg_has_role(c.relowner, 'usage') as is_ours
  from unnest(:tables::text[]) as asked (name)
  join pg_class c on c.oid = to_regclass(asked.name)
 where pg_relation_size(c.oid)
       >= greatest(:enough::bigint,
                   case when exists (select from pg_stats s where s.schemaname = c.relnamespace::regnamespace::text
                                                              and s.tablename = c.relname)
                          or pg_stat_get_last_analyze_time(c.oid) is not null
                          or pg_stat_get_last_autoanalyze_time(c.oid) is not null
                        then :times::bigint * c.relpages * current_setting('block_size')::bigint end);
