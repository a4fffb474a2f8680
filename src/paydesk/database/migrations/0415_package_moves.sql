-- oldest code: 150
-- Moving what runs from one version of a package to another: a change of plan for each, planned in batches by workers.
-- Code of before plans none, and carries out those that are planned.
create sequence package_move_id_seq;
create table package_move (
    merchant_id bigint not null,
    live boolean not null,
    id bigint not null default nextval('package_move_id_seq'),
    from_version_id bigint not null,
    to_version_id bigint not null,
    state text not null default 'moving' check (state in ('moving', 'moved', 'taking_back', 'taken_back')),
    subscriptions bigint not null,
    planned bigint not null default 0,
    until_id bigint not null,
    after_id bigint not null default 0,
    taken_back_after bigint not null default 0,
    created_at timestamptz not null,
    finished_at timestamptz,
    primary key (merchant_id, id)
);
comment on table package_move is 'a wish to have what is on one version of a package go on as another, and how far that is';
comment on column package_move.subscriptions is 'how many there were to move when it was wished';
comment on column package_move.until_id is 'the newest subscription then; those that came later are not moved';
comment on column package_move.after_id is 'all subscriptions up to this one are seen to';
comment on column package_move.taken_back_after is 'the same of what it has planned, where that is taken back';
comment on column package_move.created_at is 'real time, as finished_at: never a test clock''s';
-- From each version one at a time.
create unique index package_move_under_way on package_move (merchant_id, live, from_version_id) where state = 'moving';
-- Serves the workers: the few that are not over.
create index package_move_to_carry_on on package_move (merchant_id, id) where state in ('moving', 'taking_back');

create function why_it_stays(state text, of_version boolean, charging boolean, change_type text, failures integer,
                             date_next timestamptz, at timestamptz, beyond_limit boolean, too_slow boolean)
    returns text
    language sql immutable
    return case when state not in ('Trial', 'Active') then 'ended'
                when not of_version then 'coupon'
                when charging then 'charging'
                when change_type = 'resume' then 'paused'
                when change_type is not null then 'changing'
                when failures > 0 then 'failing'
                when date_next is null then 'last_period'
                when date_next <= at then 'charging'
                when beyond_limit then 'limit'
                when too_slow then 'too_slow' end;
comment on function why_it_stays is 'why a subscription is not moved to another version; null: it is';
