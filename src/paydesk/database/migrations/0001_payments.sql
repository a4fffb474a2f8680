-- One-time payments: merchants and their keys, checkouts, payments and their attempts, ledger, pingbacks.
--
-- merchant_id leads every primary key, foreign key and unique index, so that merchants can be spread over databases;
-- ids come from deployment-wide sequences. Each row of business data says whether it is live or test.

create sequence merchant_id_seq;
create sequence merchant_key_id_seq;
create sequence checkout_id_seq;
create sequence customer_id_seq;
create sequence card_id_seq;
create sequence payment_id_seq;
create sequence payment_attempt_id_seq;
create sequence ledger_posting_id_seq;
create sequence ledger_entry_id_seq;
create sequence pingback_id_seq;
create sequence pingback_attempt_id_seq;
create sequence rejected_form_id_seq;

create table merchant (
    id bigint primary key default nextval('merchant_id_seq'),
    name text not null,
    email text not null,
    time_zone text not null default 'UTC',
    test_mode boolean not null default true,
    went_live_at timestamptz,
    pingback_url text,
    test_pingback_url text,
    pingback_format text not null default 'json' check (pingback_format in ('json', 'form')),
    shipped_goods boolean not null default false,
    created_at timestamptz not null
);
comment on column merchant.test_mode is 'the account''s toggle: forms posted to the live base count as test';
comment on column merchant.pingback_format is 'body of version 1 pingbacks';

create table merchant_key (
    merchant_id bigint not null references merchant (id),
    id bigint not null default nextval('merchant_key_id_seq'),
    public_key text not null,
    private_key_lookup bytea not null,
    private_key_sealed bytea not null,
    vault_key_id text not null,
    created_at timestamptz not null,
    valid_until timestamptz,
    primary key (merchant_id, id)
);
comment on column merchant_key.private_key_lookup is 'keyed HMAC of the private key: finds a merchant by it, reveals nothing';
-- The only uniqueness across merchants: keys name their merchant.
create unique index merchant_key_by_public_key on merchant_key (public_key);
create unique index merchant_key_by_private_key on merchant_key (private_key_lookup);

create table fee_plan (
    merchant_id bigint primary key references merchant (id),
    rate numeric(9, 6) not null check (rate >= 0 and rate < 1),
    fixed numeric(20, 4) not null check (fixed >= 0),
    reserve_rate numeric(9, 6) not null check (reserve_rate >= 0 and reserve_rate < 1)
);

-- Counts forms for the rate limit. Losing it in a crash costs nothing, so it writes no log.
create unlogged table form_count (
    merchant_id bigint not null,
    client_address text not null,
    minute timestamptz not null,
    forms integer not null,
    primary key (merchant_id, client_address, minute)
) with (fillfactor = 50);

create table rejected_form (
    merchant_id bigint not null,
    live boolean not null,
    id bigint not null default nextval('rejected_form_id_seq'),
    at timestamptz not null,
    status integer not null,
    reason text not null,
    fields jsonb not null,
    primary key (merchant_id, at, id)
) partition by range (at);
create table rejected_form_other partition of rejected_form default;

create table checkout (
    merchant_id bigint not null references merchant (id),
    live boolean not null,
    id bigint not null default nextval('checkout_id_seq'),
    token text not null,
    request_digest bytea not null,
    merchant_order_id text not null,
    amount numeric(20, 4) not null check (amount > 0),
    currency text not null,
    description text not null,
    success_url text not null,
    pingback_url text,
    sign_version text not null check (sign_version in ('v1', 'v2')),
    key_id bigint not null,
    parameters jsonb not null,
    email text not null default '',
    first_name text not null default '',
    last_name text not null default '',
    country text not null default '',
    created_at timestamptz not null,
    expires_at timestamptz not null,
    primary key (merchant_id, id),
    foreign key (merchant_id, key_id) references merchant_key (merchant_id, id)
);
comment on table checkout is 'a valid signed form; whether it is open, paid or closed follows from its order''s payment';
create unique index checkout_by_token on checkout (merchant_id, token);
-- The same signed request returns to the same checkout.
create unique index checkout_by_request on checkout (merchant_id, live, request_digest);
create index checkout_by_order on checkout (merchant_id, live, merchant_order_id);

-- Personal data stands in rows of its own, so that it can be erased while ledger and payments stay.
create table customer (
    merchant_id bigint not null references merchant (id),
    live boolean not null,
    id bigint not null default nextval('customer_id_seq'),
    email text not null,
    first_name text not null,
    last_name text not null,
    username text not null,
    country text not null,
    created_at timestamptz not null,
    erased_at timestamptz,
    primary key (merchant_id, id)
);

create table card (
    merchant_id bigint not null references merchant (id),
    live boolean not null,
    id bigint not null default nextval('card_id_seq'),
    number_sealed bytea,
    vault_key_id text not null,
    fingerprint bytea not null,
    bin text not null,
    last4 text not null,
    brand text not null,
    exp_month smallint not null,
    exp_year smallint not null,
    holder text not null,
    created_at timestamptz not null,
    erased_at timestamptz,
    primary key (merchant_id, id)
);
comment on column card.number_sealed is 'AES-256-GCM under vault_key_id, bound to merchant and row';

create table payment (
    merchant_id bigint not null references merchant (id),
    live boolean not null,
    id bigint not null default nextval('payment_id_seq'),
    merchant_order_id text not null,
    state text not null check (state in ('processing', 'challenged', 'declined', 'authorized', 'captured', 'voided')),
    amount numeric(20, 4) not null check (amount >= 0),
    currency text not null,
    net numeric(20, 4) not null default 0,
    reserve numeric(20, 4) not null default 0,
    fees numeric(20, 4) not null default 0,
    checkout_id bigint,
    attempt_id bigint not null,
    customer_id bigint not null,
    card_id bigint not null,
    sign_version text not null,
    key_id bigint not null,
    pingback_url text,
    created_at timestamptz not null,
    paid_at timestamptz,
    primary key (merchant_id, id),
    foreign key (merchant_id, checkout_id) references checkout (merchant_id, id),
    foreign key (merchant_id, customer_id) references customer (merchant_id, id),
    foreign key (merchant_id, card_id) references card (merchant_id, id)
) with (fillfactor = 80);
comment on column payment.attempt_id is 'the attempt that holds the payment; each transition is guarded by it';
-- An order has one payment, whatever number of checkouts and attempts: it can't be paid twice.
create unique index payment_by_order on payment (merchant_id, live, merchant_order_id);
create index payment_by_time on payment (merchant_id, live, created_at);

create table payment_attempt (
    merchant_id bigint not null references merchant (id),
    live boolean not null,
    id bigint not null default nextval('payment_attempt_id_seq'),
    payment_id bigint not null,
    checkout_id bigint,
    state text not null check (state in (
        'processing', 'challenged', 'approved', 'declined', 'failed', 'abandoned', 'voiding', 'voided')),
    idempotency_key text not null,
    acquirer text not null,
    capture boolean not null,
    amount numeric(20, 4) not null,
    currency text not null,
    card_id bigint not null,
    client_address text not null,
    not_after timestamptz not null,
    acquirer_reference text not null default '',
    network_reference text not null default '',
    challenge_url text not null default '',
    decline_reason text not null default '',
    created_at timestamptz not null,
    finished_at timestamptz,
    lookups integer not null default 0,
    lookup_at timestamptz,
    leased_until timestamptz,
    alerted_at timestamptz,
    primary key (merchant_id, id),
    foreign key (merchant_id, payment_id) references payment (merchant_id, id)
) with (fillfactor = 80);
comment on column payment_attempt.not_after is 'the acquirer refuses the key from then on, so that "not found" becomes final';
comment on column payment_attempt.lookup_at is 'when the janitor next asks the acquirer; null once nothing can change';
create unique index payment_attempt_by_key on payment_attempt (merchant_id, idempotency_key);
create index payment_attempt_by_payment on payment_attempt (merchant_id, live, payment_id);
create index payment_attempt_by_checkout on payment_attempt (merchant_id, live, checkout_id);
-- Serves the janitor's claim.
create index payment_attempt_to_look_up on payment_attempt (lookup_at) where lookup_at is not null;
-- Serves the guard against card testing.
create index payment_attempt_declined on payment_attempt (merchant_id, live, client_address, finished_at)
    where state = 'declined';

create table ledger_entry (
    merchant_id bigint not null references merchant (id),
    live boolean not null,
    id bigint not null default nextval('ledger_entry_id_seq'),
    posting_id bigint not null,
    kind text not null check (kind in ('capture')),
    payment_id bigint not null,
    account text not null check (account in ('acquirer', 'pending', 'reserve', 'fees')),
    currency text not null,
    amount numeric(20, 4) not null check (amount <> 0),
    at timestamptz not null,
    primary key (merchant_id, id),
    foreign key (merchant_id, payment_id) references payment (merchant_id, id)
);
comment on table ledger_entry is 'append-only double entry: each posting sums to zero; debits are positive, so what Paydesk owes a merchant is negative';
create index ledger_entry_by_posting on ledger_entry (merchant_id, live, posting_id);
create index ledger_entry_by_payment on ledger_entry (merchant_id, live, payment_id);

create function refuse_change() returns trigger language plpgsql as $$
begin
    raise exception '% is append-only', tg_table_name;
end $$;
create trigger ledger_entry_is_append_only before update on ledger_entry
    for each row execute function refuse_change();
-- Test data may be deleted as a whole when a test clock is reset; live entries never.
create trigger live_ledger_entry_is_kept before delete on ledger_entry
    for each row when (old.live) execute function refuse_change();

create table pingback (
    merchant_id bigint not null references merchant (id),
    live boolean not null,
    id bigint not null default nextval('pingback_id_seq'),
    event text not null,
    payment_id bigint,
    url text,
    sign_version text not null check (sign_version in ('v1', 'v2')),
    key_id bigint not null,
    format text not null check (format in ('json', 'form')),
    payload text not null,
    state text not null check (state in ('waiting', 'due', 'acknowledged', 'exhausted')),
    attempts integer not null default 0,
    due_at timestamptz not null,
    leased_until timestamptz,
    created_at timestamptz not null,
    finished_at timestamptz,
    primary key (merchant_id, id),
    foreign key (merchant_id, payment_id) references payment (merchant_id, id),
    check ((url is null) = (state = 'waiting'))
) with (fillfactor = 80);
comment on column pingback.payload is 'the envelope as JSON text without pingback_ts, which each attempt adds anew';
-- A payment is reported once.
create unique index pingback_of_payment on pingback (merchant_id, live, payment_id) where event = 'payment';
create index pingback_by_time on pingback (merchant_id, live, created_at);
-- Serves the sender's claim: one merchant's side after the other, oldest first.
create index pingback_due on pingback (merchant_id, live, due_at) where state = 'due';
-- Serves the sending of what waited for a URL.
create index pingback_waiting on pingback (merchant_id, live) where state = 'waiting';

create table pingback_attempt (
    merchant_id bigint not null,
    live boolean not null,
    id bigint not null default nextval('pingback_attempt_id_seq'),
    pingback_id bigint not null,
    number integer not null,
    at timestamptz not null,
    url text not null,
    request_headers jsonb not null,
    request_body text not null,
    status integer,
    response_body text not null default '',
    error text not null default '',
    duration_ms integer not null,
    primary key (merchant_id, at, id)
) partition by range (at);
create table pingback_attempt_other partition of pingback_attempt default;
create index pingback_attempt_by_pingback on pingback_attempt (merchant_id, live, pingback_id, number);
