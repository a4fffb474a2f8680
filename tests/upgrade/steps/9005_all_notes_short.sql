-- oldest code: 150
-- The check is asked of what is there.
alter table payment validate constraint payment_note_is_short;
