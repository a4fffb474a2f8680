-- What can't be booked, what contradicts and what is held waits in one list for an operator, with its reason.

create sequence alarm_id;

create table alarm (
    merchant_id bigint not null,
    live boolean not null,
    id bigint not null default nextval('alarm_id'),
    kind text not null,
    subject text not null check (subject <> ''),
    reason text not null,
    details jsonb not null default '{}',
    raised_at timestamptz not null,
    last_at timestamptz not null,
    times integer not null default 1 check (times > 0),
    settled_at timestamptz,
    settled_by text,
    primary key (merchant_id, live, id),
    check ((settled_at is null) = (settled_by is null))
);
comment on table alarm is 'what needs a person: raised by whatever met it, settled by an operator or by what mended itself';
comment on column alarm.merchant_id is '0 where no merchant is known, such as what concerns a process';
comment on column alarm.subject is 'what it is about, as `payment 13330`: at most one alarm of a kind is open on it';
comment on column alarm.times is 'how often it was raised; the reason and the details are those of the last time';
comment on column alarm.settled_by is 'a person''s id as `person 5`, `command line`, or what saw that it had mended itself';

-- One open alarm of a kind on one thing: serves raising, which counts repetitions, and settling by subject.
create unique index alarm_open_on on alarm (merchant_id, live, kind, subject) where settled_at is null;
-- Serve the operator's lists over all merchants, newest first.
create index alarm_open on alarm (raised_at, id) where settled_at is null;
create index alarm_settled on alarm (settled_at, id) where settled_at is not null;
-- Serves settling by the id alone, which an operator reads off the list; ids come from one sequence.
create index alarm_by_id on alarm (id);
