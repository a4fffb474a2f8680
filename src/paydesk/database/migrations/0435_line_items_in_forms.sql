-- oldest code: 150
alter table merchant add column signs_line_items boolean not null default false;
comment on column merchant.signs_line_items is 'whether line_items are read in forms';
