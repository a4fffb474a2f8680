-- oldest code: 150
-- A difference between an acquirer's list and our books that an operator can explain stays open here, marked as accepted: what
-- holds back a charge beside a forgotten purchase, code of before included, goes on to see it.
alter table alarm
    add column accepted_at timestamptz,
    add column accepted_by text not null default '',
    add column accepted_why text not null default '',
    add column accepted_fact text not null default '';
comment on column alarm.accepted_at is
    'when an operator took it as it is: it waits for nobody until it says something else or both agree';
comment on column alarm.accepted_by is 'a person''s id as `person 5`, or `command line`';
comment on column alarm.accepted_fact is 'what was accepted: what differs, without why it can''t be adopted';

-- Whether what is told of something that was accepted is another fact than the one that was.
create function said_otherwise(accepted alarm, details jsonb, reason text) returns boolean
    language sql immutable
    return accepted.accepted_at is not null and accepted.accepted_fact <> coalesce(details ->> 'fact', reason);
