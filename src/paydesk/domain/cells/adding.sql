-- name: hold_numbers()!
-- Until the transaction's end no other number becomes a cell's, or is given out as a range of ids: whoever asks next sees
-- what was decided. A lock that no right is needed for: a move asks home as the role that enters what is new.
select pg_advisory_xact_lock('directory'::regclass::oid::integer, 0);

-- name: add_cell(number, address, inside, database_id, now)$
-- Again with another address it moves; another database under its number, or it under another number, gives nothing back,
-- nor does a number whose ids another cell gives out.
insert into cell as c (number, address, inside, database_id, added_at)
select :number, :address, :inside, :database_id, :now
 where not exists (select from cell where database_id = :database_id and number <> :number)
   and not exists (select from directory where kind = 'ids' and name = :number::integer::text)
    on conflict (number)
    do update set address = excluded.address, inside = excluded.inside
 where c.database_id = excluded.database_id
returning number;

-- name: follow(home)$
-- A database has one home for good.
update deployment set home_cell = :home where coalesce(home_cell, :home) = :home returning home_cell;

-- name: database_id()$
select tag from deployment;
