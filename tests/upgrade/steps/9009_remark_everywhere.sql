-- oldest code: 150
alter table payment validate constraint payment_has_remark;
