-- oldest code: 150
alter table operator_entry
    add column finding_id bigint,
    drop constraint operator_entry_kind_check,
    drop constraint operator_entry_check,
    add constraint operator_entry_kind check (kind in ('line', 'arrival', 'arrival_undone', 'correction')) not valid,
    add constraint operator_entry_subject check (
        (line is not null) = (kind = 'line') and (payout is not null) = (kind in ('arrival', 'arrival_undone'))
        and (finding_id is not null) = (kind = 'correction')) not valid;
comment on column operator_entry.finding_id is 'the finding that a correction is of';
