-- Which deployment this is: every purchase carries both at the acquirer, so that what an earlier state of this database,
-- or a copy of it, has done there is told apart.
create table deployment (
    only_one boolean primary key default true check (only_one),
    tag text not null default replace(gen_random_uuid()::text, '-', ''),
    epoch integer not null default 1
);
comment on column deployment.epoch is 'raised when the database was put back to an earlier state';
insert into deployment default values;
