-- oldest code: 150
-- A pingback is written twice more: taken, and what came of it. With room for that on its page the first spares the
-- indexes five entries each, and both the log the whole row.
alter table pingback set (fillfactor = 50);
