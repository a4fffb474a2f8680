-- A refund may fail after it was made: the customer's bank did not take it, and its money is the merchant's again.

alter table movement
    add column failed_at timestamptz,
    add column failure_muted boolean not null default false,
    drop constraint movement_state_check,
    add constraint movement_state_check
        check (state in ('processing', 'done', 'refused') or state = 'failed' and kind = 'refund') not valid,
    add constraint movement_failed_at_check check ((state = 'failed') = (failed_at is not null)) not valid;
alter table movement validate constraint movement_state_check;
alter table movement validate constraint movement_failed_at_check;
comment on column movement.failed_at is 'when its money came back; `refusal` says why';
comment on column movement.failure_muted is 'the account did not want to be told that it failed';

alter table ledger_entry
    drop constraint ledger_entry_kind_check,
    add constraint ledger_entry_kind_check check (kind in (
        'capture', 'settlement', 'reserve_release', 'refund', 'refund_failure', 'chargeback', 'chargeback_fee',
        'chargeback_reversal', 'payout')) not valid;
alter table ledger_entry validate constraint ledger_entry_kind_check;

create table failed_refund_reading (
    acquirer text primary key,
    place text not null default '',
    read_at timestamptz,
    leased_until timestamptz
);
comment on table failed_refund_reading is 'how far each acquirer''s failed refunds were read; one worker at a time';
