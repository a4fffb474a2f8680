-- oldest code: 150
-- A merchant may come back to where its people have accounts still: if its move is called off, those alone go with the copy
-- whom it has brought.
alter table merchant_fence add column people bigint[] not null default '{}';
comment on column merchant_fence.people is 'of who comes: the people who were made here for its team';
