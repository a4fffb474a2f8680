-- Chargebacks: disputes as acquirers tell them, and those that wait until they can be booked.

create table chargeback (
    merchant_id bigint not null,
    live boolean not null,
    id bigint not null default nextval('movement_id_seq'),
    payment_id bigint not null,
    state text not null check (state in ('inquiry', 'open', 'won', 'lost', 'dropped')),
    acquirer text not null,
    acquirer_reference text not null,
    amount numeric(20, 4) not null check (amount > 0),
    currency text not null,
    fee numeric(20, 4) not null check (fee >= 0),
    reason text not null,
    evidence text not null default '',
    evidence_at timestamptz,
    muted text[] not null default '{}',
    opened_at timestamptz not null,
    closed_at timestamptz,
    mailed boolean not null default false,
    disputed_amount numeric(20, 4),
    disputed_currency text,
    taken numeric(20, 4) not null default 0 check (taken >= 0),
    returned numeric(20, 4) not null default 0 check (returned >= 0),
    takes integer not null default 0,
    returns integer not null default 0,
    aside boolean not null default false,
    ends_subscription boolean not null default false,
    told_at timestamptz,
    asked_at timestamptz not null default now(),
    primary key (merchant_id, id),
    foreign key (merchant_id, payment_id) references payment (merchant_id, id),
    constraint chargeback_closed_check check ((state in ('inquiry', 'open')) = (closed_at is null))
);
comment on column chargeback.amount is 'what is disputed, in the payment''s currency';
comment on column chargeback.muted is 'what the account did not want to be told of it';
comment on column chargeback.disputed_amount is 'what is disputed, in the dispute''s own currency; null: as amount';
comment on column chargeback.taken is 'all that the bank took for it so far, in the payment''s currency';
comment on column chargeback.returned is 'all that the bank gave back of that';
comment on column chargeback.takes is 'in how many steps it was taken: each is one posting, and one pingback';
comment on column chargeback.aside is 'of an attempt whose money the payment does not have: it is not in charged_back';
comment on column chargeback.ends_subscription is 'the subscription behind it is still to be ended';
comment on column chargeback.told_at is 'when it stood so, by the acquirer, in real time';
comment on column chargeback.asked_at is 'when the acquirer was last asked how it stands, in real time';
create unique index chargeback_by_reference on chargeback (merchant_id, live, acquirer, acquirer_reference);
create index chargeback_by_payment on chargeback (merchant_id, live, payment_id);
create index chargeback_by_time on chargeback (merchant_id, live, opened_at, id);
create index chargeback_to_tell on chargeback (merchant_id, id) where not mailed;
-- Serve the list of all merchants' chargebacks, newest first, of all states or of one; few are ever written.
create index chargeback_of_all on chargeback (live, opened_at, id);
create index chargeback_of_state on chargeback (live, state, opened_at, id);
-- Serves the end of the subscriptions behind chargebacks.
create index chargeback_ending on chargeback (merchant_id, id) where ends_subscription;
-- Serves the daily question how each stands that is not over.
create index chargeback_to_ask on chargeback (acquirer, asked_at)
    where state in ('inquiry', 'open') or state = 'won' and returned < taken;

-- Processes of an older version know no sums and steps of a chargeback. What they write, which names no currency of the
-- dispute, gets them; else the dispute would be taken for one without money, and booked once more. A later version may
-- drop this.
create function chargeback_of_the_version_before() returns trigger language plpgsql as $$
begin
    if tg_op = 'INSERT' then
        new.taken := new.amount;
        new.takes := 1;
        new.ends_subscription := new.state in ('open', 'lost');
    end if;
    if new.state = 'won' and new.returned < new.taken and (tg_op = 'INSERT' or old.state <> 'won') then
        new.returned := new.taken;
        new.returns := new.returns + 1;
    end if;
    return new;
end $$;

create trigger chargeback_of_the_version_before before insert or update of state on chargeback
    for each row when (new.disputed_currency is null) execute function chargeback_of_the_version_before();

-- How far each acquirer's disputes have been read; one worker reads at a time.
create table dispute_reading (
    acquirer text primary key,
    place text not null default '',
    read_at timestamptz,
    leased_until timestamptz,
    began_at timestamptz not null default now()
);
comment on column dispute_reading.read_at is 'when a reading last came to its end';

create table dispute_waiting (
    acquirer text not null,
    acquirer_reference text not null,
    told jsonb not null,
    reason text not null,
    first_at timestamptz not null,
    last_at timestamptz not null,
    next_at timestamptz not null,
    tries integer not null default 1,
    primary key (acquirer, acquirer_reference)
);
comment on table dispute_waiting is 'disputes as they were last told that can''t be booked yet, or not at all, and why';
-- Serves the claim of those to be tried again.
create index dispute_waiting_due on dispute_waiting (acquirer, next_at);
