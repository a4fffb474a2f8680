-- oldest code: 150
alter table payment_attempt validate constraint payment_attempt_state_is_known;
