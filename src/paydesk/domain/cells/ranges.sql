-- name: standing()^
-- The ranges that the sequences of ids stand in: all in one, but while a cell goes on in another one, or died over it.
select min(s.seqstart) / 10000000000000 as lowest, max(s.seqstart) / 10000000000000 as highest
  from pg_sequence s
  join pg_class c on c.oid = s.seqrelid
 where c.relnamespace = 'public'::regnamespace;

-- name: taken()
-- The numbers that say from when on ids are given out, or may be: each cell's own, and those that were given to one since.
select number::integer as number, false as is_given from cell
 union all
select name::integer, true from directory where kind = 'ids';

-- name: begin_range(number)!
-- What a later step of the schema makes begins there, too. Never back: whoever comes second has the higher number.
update deployment set ids = :number where coalesce(ids, cell) < :number;

-- name: to_place()
-- The sequences that are not in the cell's range yet, and where each begins and ends in it; its steps keep their digit.
select format('%I.%I', q.schemaname, q.sequencename) as name, d.base + q.start_value % 10000000000000 as first,
       d.base + 10000000000000 - q.increment_by as last
  from (select coalesce(ids, cell) * 10000000000000 as base from deployment) d
  join pg_sequences q on q.schemaname = 'public' and q.start_value < d.base
 order by 1;

-- name: hold_places()!
-- Nobody else puts a sequence until the transaction's end. What stands there is read by a later statement, or it would be
-- what stood there before the wait, and ids that were drawn since would be given out twice.
select from deployment for no key update;

-- name: is_below(name, first)$
-- Whether a sequence begins below that still.
select seqstart < :first::bigint from pg_sequence where seqrelid = :name::text::regclass;

-- name: newest_given(cell, before)$
-- What was entered just now may be about to be taken.
select max(name::integer) from directory where kind = 'ids' and cell = :cell and changed_at < :before;

-- name: own_range()$
-- The range that the cell has been given; null: none but its own.
select ids from deployment;
