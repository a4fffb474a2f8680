-- oldest code: 150
-- A column.
alter table payment add column note text not null default '';
