-- oldest code: 9010
-- The other name's last release: no code that is allowed to run writes the old one.
drop trigger payment_remark on payment;
drop function payment_remark();
alter table payment drop column note;
