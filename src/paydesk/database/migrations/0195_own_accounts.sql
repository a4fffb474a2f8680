-- oldest code: 150
-- Whose account is asked under a name, as the acquirer itself calls it: two keys of one account are one account. And the
-- accounts that processes remember and this database does not, since it was put back to a time before they were added.
create table acquirer_own_id (
    account text primary key,
    own_id text not null unique,
    learnt_at timestamptz not null default clock_timestamp()
);
comment on table acquirer_own_id is 'of an account that was added, and of that of the settings';
comment on column acquirer_own_id.own_id is 'the acquirer''s own name of it, and the side of its key';

create table acquirer_lost (
    account text primary key,
    kind text not null,
    live boolean not null,
    own_id text not null default '',
    missed_at timestamptz not null default clock_timestamp(),
    gone_at timestamptz,
    gone_because text not null default ''
);
comment on table acquirer_lost is 'accounts that were added once, as processes remember, and that this database had forgotten';
comment on column acquirer_lost.gone_at is 'an operator says that it is not added again; until it is, or this is said, all is held';
