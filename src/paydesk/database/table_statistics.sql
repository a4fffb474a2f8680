-- name: tables_that_grew(tables, enough, times)
-- Those of these tables that have so many bytes, and so many times the pages that they had when they were last analyzed
-- or vacuumed; whether we may analyze them. A restored dump has made its indexes last, which notes the pages, too: so those
-- as well of whose values nothing is known.
select c.relname as name, pg_has_role(c.relowner, 'usage') as is_ours
  from unnest(:tables::text[]) as asked (name)
  join pg_class c on c.oid = to_regclass(asked.name)
 where pg_relation_size(c.oid)
       >= greatest(:enough::bigint,
                   case when exists (select from pg_stats s where s.schemaname = c.relnamespace::regnamespace::text
                                                              and s.tablename = c.relname)
                        then :times::bigint * c.relpages * current_setting('block_size')::bigint end);
