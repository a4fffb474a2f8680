-- oldest code: 150
-- A merchant that comes is copied while it goes on where it is, and what changes there meanwhile is brought after it: this is
-- what says from when on that is.
alter table merchant_fence add column copied_of text, add column copied_below xid8;
comment on column merchant_fence.copied_of is
    'of who comes: the server, its timeline and the database that the copy here is of; null while there is none';
comment on column merchant_fence.copied_below is
    'all that transactions with a smaller number did there is in the copy; null while there is none';
