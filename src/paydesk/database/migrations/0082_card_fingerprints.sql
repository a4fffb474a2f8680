-- Beside the first six and last four digits a fingerprint of the number leaves few numbers to try, for whoever has the key
-- that it was made with. Nothing reads it.
alter table card alter column fingerprint set default '';
update card set fingerprint = '' where fingerprint <> '';
comment on column card.fingerprint is 'no longer written; empty';
