-- oldest code: 150
-- What acquirers tell of the balances that they keep for the operator: each movement with its fee, and the payouts to the
-- operator's bank. The books of the operator's own money stand beside those of the merchants, whose balances don't change
-- by it; code of before knows nothing of them.
create table balance_line (
    acquirer text not null,
    line text not null,
    kind text not null check (kind in (
        'capture', 'refund', 'refund_failure', 'chargeback', 'chargeback_reversal', 'fee', 'payout', 'payout_return',
        'other')),
    type text not null,
    at timestamptz not null,
    currency text not null,
    amount numeric not null,
    fee numeric not null,
    of_amount numeric,
    of_currency text not null,
    source text not null,
    purchase text not null,
    key text not null,
    of_key text not null,
    is_ours boolean,
    payout text,
    merchant_id bigint,
    live boolean,
    payment_id bigint,
    entered_at timestamptz not null default clock_timestamp(),
    examined_at timestamptz,
    primary key (acquirer, line),
    check ((of_amount is null) = (of_currency = ''))
);
comment on table balance_line is 'movements of the balances that acquirers keep for the operator, as they were told first';
comment on column balance_line.line is 'the acquirer''s own name of it: one that is told twice is entered once';
comment on column balance_line.amount is 'what it adds before fees, in the balance''s currency; negative for what is taken';
comment on column balance_line.fee is 'what the acquirer keeps of it; negative for what it gives back';
comment on column balance_line.of_amount is 'what it was in its own currency, where that is another one';
comment on column balance_line.payout is 'the payout to the operator''s bank that it is in; null: in none yet';
comment on column balance_line.payment_id is 'the payment of ours that it is of; null: of none, or not known';
comment on column balance_line.examined_at is 'when it was compared with our books; null: it is to be';
create index balance_line_of_payout on balance_line (acquirer, payout, line) where payout is not null;
create index balance_line_of_purchase on balance_line (acquirer, purchase) where purchase <> '';
create index balance_line_of_key on balance_line (acquirer, of_key) where of_key <> '';
create index balance_line_to_examine on balance_line (acquirer, line) where examined_at is null;
create index balance_line_by_time on balance_line (acquirer, at);

create table bank_payout (
    acquirer text not null,
    payout text not null,
    at timestamptz not null,
    currency text not null,
    amount numeric not null,
    state text not null check (state in ('on_its_way', 'arrived', 'failed')),
    is_traced boolean not null,
    bank_reference text not null,
    lines_read boolean not null default false,
    entered_at timestamptz not null default clock_timestamp(),
    primary key (acquirer, payout)
);
comment on table bank_payout is 'payouts of acquirers to the operator''s own bank';
comment on column bank_payout.is_traced is 'whether the acquirer tells which lines it is of';
comment on column bank_payout.lines_read is 'whether all of its lines were entered';
create index bank_payout_by_time on bank_payout (at, acquirer, payout);

create sequence operator_posting_id_seq;
create table operator_entry (
    id bigint generated always as identity primary key,
    posting_id bigint not null,
    kind text not null check (kind in ('line', 'arrival', 'arrival_undone')),
    acquirer text not null,
    line text,
    payout text,
    account text not null check (account in (
        'acquirer', 'acquirer_fees', 'exchange', 'under_way', 'bank', 'other')),
    currency text not null,
    amount numeric not null check (amount <> 0),
    at timestamptz not null,
    check ((line is not null) = (kind = 'line') and (payout is not null) = (kind <> 'line'))
);
comment on table operator_entry is
    'append-only double entry of the operator''s own money: each posting sums to zero; debits are positive';
create unique index operator_entry_of_line on operator_entry (acquirer, line, account, currency) where line is not null;
create index operator_entry_of_payout on operator_entry (acquirer, payout) where payout is not null;
-- Serves what an account cost in a month.
create index operator_entry_by_time on operator_entry (at, acquirer) where account = 'acquirer_fees';
create trigger operator_entry_is_append_only before update or delete on operator_entry
    for each row execute function refuse_change();

create table proceeds_finding (
    id bigint generated always as identity primary key,
    acquirer text not null,
    kind text not null,
    subject text not null,
    payout text,
    merchant_id bigint,
    live boolean,
    payment_id bigint,
    reason text not null,
    found_at timestamptz not null,
    settled_at timestamptz,
    accepted_at timestamptz,
    accepted_by text not null default '',
    accepted_why text not null default '',
    unique (acquirer, kind, subject)
);
comment on table proceeds_finding is 'what differs between acquirers'' balances and our books; open until it is settled';
comment on column proceeds_finding.subject is 'the line, payout, or key of a payment that it is about';
comment on column proceeds_finding.settled_at is 'when both agreed again; null: not yet';
comment on column proceeds_finding.accepted_at is 'when an operator took it as it is; null: nobody did';
create index proceeds_finding_open on proceeds_finding (acquirer, id) where settled_at is null;

create table balance_reading (
    acquirer text primary key,
    began_at timestamptz not null,
    read_to timestamptz,
    ended_at timestamptz,
    leased_until timestamptz
);
comment on table balance_reading is 'how far each acquirer''s balance was read; one worker at a time';
comment on column balance_reading.began_at is 'what was paid before the first reading is not looked for';

create table acquirer_fee (
    acquirer text not null,
    currency text not null,
    rate numeric not null check (rate between 0 and 100),
    fixed numeric not null check (fixed >= 0),
    changed_at timestamptz not null,
    primary key (acquirer, currency)
);
comment on table acquirer_fee is 'what an account''s contract says that a payment costs: percent and a sum; none: not compared';
