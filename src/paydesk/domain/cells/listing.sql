-- name: list_cells()
select c.number, c.address, c.inside, c.added_at,
       (select count(*) from directory d where d.cell = c.number and d.kind = 'merchant') as merchants
  from cell c
 order by c.number;
