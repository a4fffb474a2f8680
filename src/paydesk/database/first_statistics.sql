-- name: tables_never_looked_at(tables)
-- Those of these tables of which the planner knows nothing yet, with their size, and whether we may tell it.
select c.relname as name, pg_relation_size(c.oid) as bytes, pg_has_role(c.relowner, 'usage') as is_ours
  from pg_class c
 where c.oid in (select to_regclass(name) from unnest(:tables::text[]) name)
   and not exists (select from pg_stats s where s.schemaname = current_schema() and s.tablename = c.relname);
