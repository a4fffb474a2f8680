-- name: tables_with_rows(tables, enough)
-- Those of these tables that have so many bytes: whether the planner knows anything of them, and whether we may tell it.
select c.relname as name, pg_has_role(c.relowner, 'usage') as is_ours,
       exists (select from pg_stats s where s.schemaname = current_schema() and s.tablename = c.relname) as is_known
  from unnest(:tables::text[]) as asked (name)
  join pg_class c on c.oid = to_regclass(asked.name)
 where pg_relation_size(c.oid) >= :enough;
