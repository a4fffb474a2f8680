-- oldest code: 150
-- Not null, without a look at all rows behind a lock: first a check, which holds for what is written from now on.
alter table payment add constraint payment_has_remark check (remark is not null) not valid;
