-- oldest code: 150
alter table payment validate constraint payment_state_is_known;
