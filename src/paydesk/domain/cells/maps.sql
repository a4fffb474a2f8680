-- name: entries()
-- All that the directory knows, in its order; read by whoever leads requests to cells.
select kind, name, cell
  from directory
 order by kind, name;

-- name: cells()
select number, address, inside
  from cell
 order by number;
