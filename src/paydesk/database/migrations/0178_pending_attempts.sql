-- oldest code: 150
alter table payment_attempt
    drop constraint payment_attempt_state_check,
    add constraint payment_attempt_state_is_known check (state in (
        'processing', 'challenged', 'pending', 'approved', 'declined', 'failed', 'abandoned', 'voiding', 'voided'))
        not valid;
