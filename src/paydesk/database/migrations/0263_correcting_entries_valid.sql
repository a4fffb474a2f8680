-- oldest code: 150
alter table operator_entry validate constraint operator_entry_kind, validate constraint operator_entry_subject;
