-- name: partitions_of(logs)
-- The partitions of these logs.
select c.relname as name
  from pg_inherits i
  join pg_class c on c.oid = i.inhrelid
  join pg_class p on p.oid = i.inhparent
 where p.relname = any(:logs::text[]);

-- name: is_there(name)$
select exists (select from pg_class where relname = :name::text);

-- name: columns_of(name)$
-- The columns of a table, as a statement lists them.
select string_agg(quote_ident(attname), ', ' order by attnum)
  from pg_attribute
 where attrelid = to_regclass(:name) and attnum > 0 and not attisdropped;
