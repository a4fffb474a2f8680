-- A pingback of an event that the account has muted stays in the log, and is not sent.

alter table pingback drop constraint pingback_state_check, drop constraint pingback_check;
-- What is there fulfils these already, since they allow more than the ones before.
alter table pingback
    add constraint pingback_state_check
        check (state in ('waiting', 'due', 'acknowledged', 'exhausted', 'muted')) not valid,
    add constraint pingback_check check (state = 'muted' or (url is null) = (state = 'waiting')) not valid;
comment on column merchant.muted_events is 'pingback types that the account does not want';
