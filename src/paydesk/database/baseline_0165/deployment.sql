-- The deployment: which one it is, whether its database's history went back, and whether it is a copy.

-- Every purchase carries tag and epoch at the acquirer, so that what an earlier state of this database, or a copy of
-- it, has done there is told apart.
create table deployment (
    only_one boolean primary key default true check (only_one),
    tag text not null default replace(gen_random_uuid()::text, '-', ''),
    epoch integer not null default 1,
    copied_at timestamptz
);
comment on column deployment.epoch is 'raised when the database was put back to an earlier state';
comment on column deployment.copied_at is
    'since when this is a copy of another deployment''s database; null: it is none. Never taken back';
insert into deployment default values;

create function refuse_live_money() returns trigger
    language plpgsql as $$
begin
    raise exception 'this database is a copy of another deployment''s: nothing is done with live payments here'
        using errcode = 'object_not_in_prerequisite_state';
end $$;

-- Money moves only after its intent is committed, so a copy commits none, whatever asks for it. Off until then.
create trigger copies_move_no_live_money before insert on payment_attempt
    for each row when (new.live) execute function refuse_live_money();
alter table payment_attempt disable trigger copies_move_no_live_money;

create trigger copies_move_no_live_money before insert on movement
    for each row when (new.live) execute function refuse_live_money();
alter table movement disable trigger copies_move_no_live_money;

create trigger copies_move_no_live_money before insert on card_change
    for each row when (new.live) execute function refuse_live_money();
alter table card_change disable trigger copies_move_no_live_money;

-- Where this statement runs: each server that was made by itself has another identifier, each promotion begins another
-- timeline. (The control file's timeline lags after a promotion.)
create function server_place() returns text
    language sql volatile
    return (select system_identifier from pg_control_system())::text || '/'
           || substring(pg_walfile_name(pg_current_wal_lsn()), 1, 8);

-- What shows that the database's history went back (a failover or a restore that lost commits), and what is held then.
create table history (
    only_one boolean primary key default true check (only_one),
    number bigint not null default 0,
    beaten_at timestamptz not null default clock_timestamp(),
    arrived text not null default '',
    whole text not null default '',
    looking_until timestamptz,
    judged_at timestamptz,
    held_at timestamptz,
    held_because text not null default '',
    held_since timestamptz,
    check ((held_at is null) = (held_because = ''))
) with (fillfactor = 20);
comment on column history.number is
    'the beat: a worker raises it each second, so that who remembers a higher one knows of commits that are lost';
comment on column history.beaten_at is 'database time of the last beat';
comment on column history.arrived is
    'system identifier and timeline of the server for which ids were last raised behind a gap';
comment on column history.whole is
    'system identifier and timeline of the server on which nothing that acquirers know was missing';
comment on column history.looking_until is 'until then one process reads the acquirers'' lists';
comment on column history.judged_at is 'what differs from before this was accepted by an operator';
comment on column history.held_at is 'since then nothing that moves money is begun';
comment on column history.held_since is 'acquirers'' lists are read back to this time before the hold is lifted';

-- Without a merchant a deployment has begun nothing that an acquirer could know and it not.
insert into history (arrived, whole) values (server_place(), server_place());
