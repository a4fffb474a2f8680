-- name: find_cell(kind, name)^
select c.number, c.address, c.inside
  from directory d
  join cell c on c.number = d.cell
 where d.kind = :kind and d.name = :name;

-- name: has_merchant_of(kind, name)$
-- By the merchant's row, not by the directory, of which this database may have a copy that is behind; a merchant's own name
-- is known without it.
select exists (select from merchant where id = case when :kind::text = 'merchant' then :name::text::bigint end)
    or exists (select from directory d join merchant m on m.id = d.merchant_id where d.kind = :kind and d.name = :name);

-- name: cells_of_person(name)
-- Each cell is looked up by the index: who is called so logs in there, or has an account there, too.
select c.number, c.address, c.inside
  from cell c
 where exists (select from directory d where d.kind = 'email' and d.name = :name and d.cell = c.number)
    or exists (select from directory d
                where d.kind = 'account' and d.name = :name || ' ' || c.number and d.cell = c.number)
 order by c.number;

-- name: cell_by_number(number)^
select number, address, inside from cell where number = :number::bigint;

-- name: other_cells()
select number, address, inside from cell where number <> (select cell from deployment) order by number;

-- name: this_cell()^
select cell as number, home_cell as home from deployment;

-- name: enter(kinds, names, merchant_ids, cell, now)
-- What is given back could not be entered: another cell has it, or the cell is none of those that were added, and then it
-- may be in no cell. Arrays come in the order of the key, so that two who enter the same wait for each other and don't lock
-- each other out.
with given as (
    select g.kind, g.name, g.merchant_id
      from unnest(:kinds::text[], :names::text[], :merchant_ids::bigint[]) as g (kind, name, merchant_id)
), entered as (
    insert into directory as d (kind, name, cell, merchant_id, changed_at)
    select g.kind, g.name, c.number, g.merchant_id, :now
      from given g
      join cell c on c.number = :cell
        on conflict (kind, name)
        do update set merchant_id = excluded.merchant_id, changed_at = excluded.changed_at
     where d.cell = excluded.cell
 returning kind, name
)
select g.kind, g.name,
       exists (select from cell where number = :cell)
       or exists (select from directory d where d.kind = g.kind and d.name = g.name and d.cell <> :cell) as is_there
  from given g
 where (g.kind, g.name) not in (select kind, name from entered);

-- name: switch_merchant(merchant_id, left, cell, now)$
-- All at once, so that no key leads elsewhere than its merchant. Only to a cell that was added, and once: again changes
-- nothing, nor does whoever comes so late that the merchant has gone on from there.
with switched as (
    update directory
       set cell = :cell, changed_at = :now
     where merchant_id = :merchant_id and cell = :left and exists (select from cell where number = :cell)
 returning 1
)
select count(*) from switched;

-- name: switch_people(names, left, cell, now)$
-- Who logs in in a third cell, where they have another shop, goes on doing so.
with switched as (
    update directory
       set cell = :cell, changed_at = :now
     where kind = 'email' and name = any(:names::text[]) and cell = :left and exists (select from cell where number = :cell)
 returning 1
)
select count(*) from switched;

-- name: forget_lines(kind, before)!
-- Lines of a few people within minutes: the primary key, which begins with the kind, leads to them.
delete from directory where kind = :kind and changed_at < :before;
