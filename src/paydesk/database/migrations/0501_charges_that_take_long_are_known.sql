-- oldest code: 150
alter table subscription validate constraint subscription_charge_takes_long_check;
