-- oldest code: 150
-- Files of transfers for the operator's bank. What is in one is sent by it, and recorded once the bank has taken it.
create sequence payout_file_id_seq;
create table payout_file (
    id bigint primary key default nextval('payout_file_id_seq'),
    currency text not null,
    state text not null default 'made' check (state in ('made', 'recorded', 'dropped')),
    request_key text not null unique,
    made_by text not null,
    made_at timestamptz not null,
    finished_at timestamptz,
    check ((state = 'made') = (finished_at is null))
);
comment on table payout_file is 'transfers of one currency to merchants, as one file for the operator''s bank';
comment on column payout_file.request_key is 'names one wish to make a file: however often its form comes, it counts once';

create table payout_file_line (
    file_id bigint not null references payout_file (id),
    merchant_id bigint not null,
    currency text not null,
    amount numeric(20, 4) not null check (amount > 0),
    accepted_at timestamptz not null,
    payout_id bigint,
    open boolean not null default true,
    primary key (file_id, merchant_id)
);
comment on column payout_file_line.accepted_at is
    'when the bank account was accepted to which it goes: one that was accepted later is another one';
comment on column payout_file_line.open is 'whether it may be on its way, and is not recorded yet';
-- A merchant's money is in one file at a time.
create unique index payout_file_line_open on payout_file_line (merchant_id, currency) where open;
