-- name: digests()
-- How many lines there are of each kind, and a sum over them that changes with any: the same in every copy.
select kind, count(*) as lines,
       sum(('x' || left(md5(concat_ws(' ', name, cell, merchant_id, extract(epoch from changed_at))), 15))::bit(60)::bigint)::text
           as digest
  from (
    select kind, name, cell, merchant_id, changed_at from directory
     union all
    select 'cell', number || ' ' || address || ' ' || inside, number, null, added_at from cell
  ) as line
 group by kind
 order by kind;

-- name: own_merchants(after, most)
select id from merchant where id > :after order by id limit :most;

-- name: own_keys(after_merchant, after, most)
select merchant_id, id, public_key, private_key_lookup
  from merchant_key
 where (merchant_id, id) > (:after_merchant::bigint, :after::bigint)
 order by merchant_id, id
 limit :most;

-- name: own_people(after, most)
select id, email, email_confirmed_at is not null as proven from person where id > :after order by id limit :most;

-- name: lines_of(kinds, names)
select d.kind, d.name, d.cell, d.merchant_id
  from unnest(:kinds::text[], :names::text[]) as asked (kind, name)
  join directory d on d.kind = asked.kind and d.name = asked.name;

-- name: lines_in(cell, before, after_kind, after_name, most)
-- What was entered just now may be about to be made.
select kind, name, merchant_id
  from directory
 where cell = :cell and changed_at < :before and (kind, name) > (:after_kind::text, :after_name::text)
 order by kind, name
 limit :most;

-- name: take_out(kinds, names, cell, before)$
-- Only what nobody has taken up since.
with gone as (
    delete from directory d
     using unnest(:kinds::text[], :names::text[]) as asked (kind, name)
     where d.kind = asked.kind and d.name = asked.name and d.cell = :cell and d.changed_at < :before
 returning 1
)
select count(*) from gone;
