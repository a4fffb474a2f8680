-- oldest code: 150
alter table merchant add column signs_quantities boolean not null default false;
comment on column merchant.signs_quantities is 'whether recurring_quantity is read in forms';
