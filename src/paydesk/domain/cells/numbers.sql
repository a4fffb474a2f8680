-- name: cell()$
select cell from deployment;

-- name: begin_cell(cell)$
select begin_cell(:cell::integer);

-- name: secret_noted()$
select secret_print from deployment;

-- name: note_secret(print)$
-- In a cell that has joined others it stays: nobody would find what was entered under it.
update deployment
   set secret_print = :print
 where secret_print is null or home_cell is null
returning secret_print;
