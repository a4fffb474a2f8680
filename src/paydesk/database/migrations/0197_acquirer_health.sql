-- oldest code: 150
-- How accounts at acquirers answer: counted by every process by itself, and added up here every few seconds, so that all
-- judge alike. An account that fails is out of turn until a probe brings it back. Code of before counts nothing, and asks
-- every account.
create table acquirer_count (
    account text not null,
    since timestamptz not null,
    what text not null,
    count bigint not null,
    primary key (account, since, what)
) with (fillfactor = 70);
comment on table acquirer_count is 'what calls to accounts came to, in steps of ten seconds, and of an hour later on';
comment on column acquirer_count.what is 'asked; ms <= N for an answer within N ms; unknown, unreached; by RULE; from ACCOUNT';
-- Serves the folding into hours.
create index acquirer_count_by_time on acquirer_count (since);

create table acquirer_turn (
    account text primary key,
    out_since timestamptz,
    why text not null default '',
    probe_at timestamptz,
    rest interval not null,
    back_at timestamptz
);
comment on column acquirer_turn.out_since is 'since when it is out of turn; null: it is not';
comment on column acquirer_turn.probe_at is 'when it is asked next whether it answers';
comment on column acquirer_turn.rest is 'for how long it is left alone before each probe; longer if it fails again soon';
comment on column acquirer_turn.back_at is 'when a probe brought it back: what was counted before says nothing any more';
