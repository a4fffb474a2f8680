-- A second factor's secret that was begun with belongs to the session that it was shown in. Those of before are made anew.
alter table person add column totp_session bigint;
comment on column person.totp_session is 'the session in which the secret was shown; no other one sees or confirms it';
update person set totp_sealed = null, vault_key_id = '' where totp_sealed is not null and totp_confirmed_at is null;
