-- name: partitions_of(table)
-- The partitions that hold the rows of a table; none of one that is not partitioned.
select c.relname as name
  from pg_partition_tree(to_regclass(:table)) t
  join pg_class c on c.oid = t.relid
 where t.isleaf and c.relkind = 'r' and t.level > 0
 order by c.relname;

-- name: is_invalid(index)$
-- Whether an index is there whose building was broken off.
select exists (select from pg_index where indexrelid = to_regclass(:index) and not indisvalid);
