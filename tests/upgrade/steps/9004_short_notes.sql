-- oldest code: 150
-- A check, which holds for what is written from now on.
alter table payment add constraint payment_note_is_short check (length(note) < 1000) not valid;
