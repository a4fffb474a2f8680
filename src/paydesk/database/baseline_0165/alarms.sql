-- Alarms: what can't be booked, what contradicts and what is held waits in one list for an operator, with its reason.

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
comment on table alarm is
    'what needs a person: raised by whatever met it, settled by an operator or by what mended itself';
comment on column alarm.merchant_id is '0 where no merchant is known, such as what concerns a process';
comment on column alarm.subject is 'what it is about, as `payment 13330`: at most one alarm of a kind is open on it';
comment on column alarm.times is 'how often it was raised; the reason and the details are those of the last time';
comment on column alarm.settled_by is
    'a person''s id as `person 5`, `command line`, or what saw that it had mended itself';
-- One open alarm of a kind on one thing: serves raising, which counts repetitions, and settling by subject.
create unique index alarm_open_on on alarm (merchant_id, live, kind, subject) where settled_at is null;
-- Serve the operator's lists over all merchants, newest first.
create index alarm_open on alarm (raised_at, id) where settled_at is null;
create index alarm_settled on alarm (settled_at, id) where settled_at is not null;
-- Serves settling by the id alone, which an operator reads off the list; ids come from one sequence.
create index alarm_by_id on alarm (id);

-- Whether something was set aside and is to be left alone: it has an open alarm that was raised after a time.
create function is_set_aside(merchant bigint, side boolean, about text, since timestamptz) returns boolean
language sql stable as $$
    select exists (select
                     from alarm a
                    where a.merchant_id = merchant and a.live = side and a.kind = 'set_aside' and a.subject = about
                      and a.settled_at is null and a.last_at > since)
$$;

-- Whether an acquirer's list had a purchase under this number of a wish, or one of the next nine, that our books had
-- forgotten and nobody has looked after: then nothing is charged beside it. The key is made of what stands before and
-- after the number.
create function was_forgotten(pads bytea, of_acquirer text, before text, of_number integer, after text) returns boolean
    language sql stable
    return exists (
        select
          from generate_series(of_number, of_number + 9) n
          join alarm l
            on l.merchant_id = 0 and l.live and l.kind = 'not_reconciled' and l.settled_at is null
           and l.subject = 'purchase ' || derived_key(pads, before || n || after) || ' at ' || of_acquirer);
