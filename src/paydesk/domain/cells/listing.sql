-- name: list_cells()
select c.number, c.address, c.inside, c.added_at,
       (select count(*) from directory d where d.cell = c.number and d.kind = 'merchant') as merchants,
       coalesce((select max(name::integer) from directory d where d.cell = c.number and d.kind = 'ids'), c.number)::integer as ids
  from cell c
 order by c.number;
