-- Browsers that a person has logged in with, so that a log-in from another one is told by mail.
create table person_device (
    person_id bigint not null references person (id),
    fingerprint bytea not null,
    last_seen_at timestamptz not null,
    primary key (person_id, fingerprint)
);
comment on column person_device.fingerprint is 'keyed HMAC of the person and of the random token in the browser''s cookie, which is stored nowhere';
-- Serves forgetting browsers that were not seen for long.
create index person_device_by_time on person_device (last_seen_at);
