-- oldest code: 150
-- in place of all steps up to this one
-- Merchants: the account, its keys, what it pays and how it looks, its calls, and what its shop sends amiss.
--
-- merchant_id leads every primary key, foreign key and unique index, so that merchants can be spread over databases;
-- ids come from deployment-wide sequences. Each row of business data says whether it is live or test.

create sequence merchant_id_seq;
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
    created_at timestamptz not null,
    extra_events text[] not null default '{}',
    test_clock interval not null default interval '0',
    clock_holder text not null default '',
    clock_held_until timestamptz,
    settlement_days integer not null default 7 check (settlement_days between 0 and 365),
    reserve_days integer not null default 180 check (reserve_days between 0 and 3650),
    muted_events text[] not null default '{}',
    customer_mails boolean not null default true,
    test_mails boolean not null default false,
    sign_version text not null default 'v2' check (sign_version in ('v1', 'v2')),
    suspended_at timestamptz,
    suspended_reason text not null default '',
    charge_missed_until timestamptz,
    app_schemes text[] not null default '{}',
    key_tag text not null default replace(gen_random_uuid()::text, '-', ''),
    test_generation integer not null default 0
);
comment on column merchant.test_mode is 'the account''s toggle: forms posted to the live base count as test';
comment on column merchant.pingback_format is 'body of version 1 pingbacks';
comment on column merchant.extra_events is 'pingback types beyond the spec''s that the account asks for';
comment on column merchant.test_clock is 'how far the test clock runs ahead of real time';
comment on column merchant.clock_holder is
    'who is moving the test clock: a lease in database time, so that one at a time does';
comment on column merchant.settlement_days is 'days from capture until pending money becomes available';
comment on column merchant.reserve_days is 'days from capture until the rolling reserve is released';
comment on column merchant.muted_events is 'pingback types that the account does not want';
comment on column merchant.customer_mails is
    'whether Paydesk writes to the merchant''s customers: receipts, subscriptions';
comment on column merchant.test_mails is 'mails about test data are sent, to the merchant instead of made-up addresses';
comment on column merchant.sign_version is 'of the integration code that the account shows; each form says its own';
comment on column merchant.suspended_reason is 'what the operator tells the merchant''s team';
comment on column merchant.charge_missed_until is
    'an operator''s choice: periods that fell due until then are all charged, none is skipped';
comment on column merchant.app_schemes is
    'schemes of the account''s own apps, to which a customer is led without a button';
comment on column merchant.key_tag is
    'drawn once: stands for the merchant in the keys of its orders, instead of an id that another may get';
comment on column merchant.test_generation is
    'raised when the test side is reset, so that its orders get other keys than those before';
create index merchant_suspended on merchant (id) where suspended_at is not null;
-- The operator's search by the beginning of a name or an address, and by the day of going live.
create index merchant_by_name on merchant (lower(name) text_pattern_ops, id);
create index merchant_by_email on merchant (lower(email) text_pattern_ops, id);
create index merchant_live on merchant (id) where went_live_at is not null;

create sequence merchant_key_id_seq;
create table merchant_key (
    merchant_id bigint not null references merchant (id),
    id bigint not null default nextval('merchant_key_id_seq'),
    public_key text not null,
    private_key_lookup bytea not null,
    private_key_sealed bytea not null,
    vault_key_id text not null,
    created_at timestamptz not null,
    valid_until timestamptz,
    scopes text[] not null default '{sign,read,move}'
        check (cardinality(scopes) > 0 and scopes <@ array['sign', 'read', 'move']),
    moves_live boolean not null default true,
    primary key (merchant_id, id)
);
comment on column merchant_key.private_key_lookup is
    'keyed HMAC of the private key: finds a merchant by it, reveals nothing';
comment on column merchant_key.moves_live is 'whether the scope to move money holds for live payments, too';
-- The only uniqueness across merchants: keys name their merchant.
create unique index merchant_key_by_public_key on merchant_key (public_key);
create unique index merchant_key_by_private_key on merchant_key (private_key_lookup);
create index merchant_key_by_prefix on merchant_key (public_key text_pattern_ops);
-- A start asks under which vault keys anything rests: one probe per key and column, however many rows there are.
create index merchant_key_sealed_under on merchant_key (vault_key_id);

create table fee_plan (
    merchant_id bigint primary key references merchant (id),
    rate numeric(9, 6) not null check (rate >= 0 and rate < 1),
    fixed numeric(20, 4) not null check (fixed >= 0),
    reserve_rate numeric(9, 6) not null check (reserve_rate >= 0 and reserve_rate < 1),
    fees_returned boolean not null default false,
    chargeback_fee numeric(20, 4) not null default 15 check (chargeback_fee >= 0)
);
comment on column fee_plan.fees_returned is 'whether a refund gives the merchant its share of the fees back';

create table currency_unit (
    currency text primary key,
    units numeric not null check (units > 0)
);
comment on table currency_unit is
    'how an amount set for dollars, euros and pounds is multiplied in other currencies; paydesk/core/units.py';
insert into currency_unit (currency, units)
values
    ('BHD', 0.2), ('KWD', 0.2), ('OMR', 0.2),
    ('JOD', 0.5),
    ('AED', 2), ('GEL', 2), ('ILS', 2), ('MYR', 2), ('PEN', 2), ('PLN', 2), ('QAR', 2), ('RON', 2), ('SAR', 2),
    ('TND', 2),
    ('BOB', 5), ('BRL', 5), ('CNY', 5), ('DKK', 5), ('GTQ', 5), ('HKD', 5), ('MAD', 5), ('MOP', 5), ('SEK', 5),
    ('TTD', 5),
    ('BWP', 10), ('GHS', 10), ('MDL', 10), ('MXN', 10), ('NAD', 10), ('NOK', 10), ('SCR', 10), ('ZAR', 10),
    ('CZK', 20), ('EGP', 20), ('HNL', 20), ('MUR', 20), ('NIO', 20), ('THB', 20), ('TRY', 20), ('TWD', 20),
    ('UAH', 20), ('UYU', 20), ('ZMW', 20),
    ('AFN', 50), ('ALL', 50), ('DOP', 50), ('INR', 50), ('MKD', 50), ('PHP', 50), ('RUB', 50),
    ('BDT', 100), ('DJF', 100), ('DZD', 100), ('ETB', 100), ('ISK', 100), ('JMD', 100), ('JPY', 100), ('KES', 100),
    ('NPR', 100), ('RSD', 100), ('VUV', 100), ('XPF', 100),
    ('AMD', 200), ('HUF', 200), ('KMF', 200), ('KZT', 200), ('LKR', 200), ('PKR', 200), ('YER', 200),
    ('CLP', 500), ('CRC', 500), ('SOS', 500), ('XAF', 500), ('XOF', 500),
    ('ARS', 1000), ('IQD', 1000), ('KRW', 1000), ('MWK', 1000), ('NGN', 1000), ('RWF', 1000),
    ('BIF', 2000), ('COP', 2000), ('KHR', 2000), ('MGA', 2000), ('MMK', 2000), ('MNT', 2000), ('TZS', 2000),
    ('UGX', 2000),
    ('GNF', 5000), ('PYG', 5000),
    ('IDR', 10000), ('UZS', 10000),
    ('LAK', 20000), ('VND', 20000),
    ('LBP', 50000);

create table fee_amount (
    merchant_id bigint not null references merchant (id),
    currency text not null,
    fixed numeric(20, 4) not null check (fixed >= 0),
    chargeback_fee numeric(20, 4) not null check (chargeback_fee >= 0),
    primary key (merchant_id, currency)
);
comment on table fee_amount is
    'a merchant''s own amounts in a currency; in others those of its fee_plan, times currency_unit';

create function fees_in(of_merchant bigint, in_currency text)
returns table (rate numeric, fixed numeric, reserve_rate numeric, fees_returned boolean, chargeback_fee numeric)
language sql stable as $$
    select f.rate, coalesce(a.fixed, f.fixed * coalesce(u.units, 1)), f.reserve_rate, f.fees_returned,
           coalesce(a.chargeback_fee, f.chargeback_fee * coalesce(u.units, 1))
      from fee_plan f
      left join fee_amount a on a.merchant_id = f.merchant_id and a.currency = in_currency
      left join currency_unit u on u.currency = in_currency
     where f.merchant_id = of_merchant
$$;
comment on function fees_in is 'what a merchant pays for a payment in a currency, in its main units';

-- What a merchant says about the business before it may take real money, and what the operator said to it.
create table business_profile (
    merchant_id bigint primary key references merchant (id),
    status text not null default 'draft' check (status in ('draft', 'submitted', 'accepted', 'refused')),
    legal_name text not null default '',
    street text not null default '',
    postal_code text not null default '',
    city text not null default '',
    country text not null default '',
    registration text not null default '',
    vat_number text not null default '',
    website text not null default '',
    support_email text not null default '',
    support_phone text not null default '',
    description text not null default '',
    goods text not null default '',
    account_holder text not null default '',
    iban_sealed bytea,
    vault_key_id text not null default '',
    iban_last4 text not null default '',
    changed_at timestamptz not null,
    submitted_at timestamptz,
    submitted_by bigint,
    decided_at timestamptz,
    decided_by bigint,
    reason text not null default '',
    payouts_from timestamptz
);
comment on column business_profile.iban_sealed is 'AES-256-GCM under vault_key_id, bound to the merchant';
comment on column business_profile.decided_by is 'the operator (a person), null for the command line';
comment on column business_profile.reason is 'why it was refused, as the merchant reads it';
comment on column business_profile.payouts_from is 'when payouts to a newly accepted bank account may begin';
-- Serves the operator's list of who waits.
create index business_profile_waiting on business_profile (submitted_at, merchant_id) where status = 'submitted';
create index business_profile_sealed_under on business_profile (vault_key_id)
    where iban_sealed is not null;

-- What a live merchant wants to change of its business profile: a version of its own, until an operator has seen it.
-- The accepted one (business_profile) stays in force meanwhile.
create sequence profile_change_id_seq;
create table profile_change (
    merchant_id bigint not null references merchant (id),
    id bigint not null default nextval('profile_change_id_seq'),
    status text not null default 'waiting' check (status in ('waiting', 'accepted', 'refused', 'withdrawn')),
    legal_name text not null,
    street text not null,
    postal_code text not null,
    city text not null,
    country text not null,
    registration text not null,
    vat_number text not null,
    website text not null,
    support_email text not null,
    support_phone text not null,
    description text not null,
    goods text not null,
    account_holder text not null,
    iban_sealed bytea,
    vault_key_id text not null,
    iban_last4 text not null,
    proposed_at timestamptz not null,
    proposed_by bigint not null,
    decided_at timestamptz,
    decided_by bigint,
    reason text not null default '',
    primary key (merchant_id, id),
    check (status = 'waiting' or iban_sealed is null)
);
comment on column profile_change.iban_sealed is
    'AES-256-GCM under vault_key_id, bound to the merchant; null keeps the accepted one, and once it is decided';
comment on column profile_change.iban_last4 is 'the end of another bank account, empty for the one that is there';
comment on column profile_change.decided_by is 'the operator (a person), null for the command line';
-- One at a time; serves the operator's list of who waits.
create unique index profile_change_waiting on profile_change (merchant_id) where status = 'waiting';
create index profile_change_by_time on profile_change (proposed_at, merchant_id) where status = 'waiting';
-- As for the other columns that hold sealed values: under which keys do they rest?
create index profile_change_sealed_under on profile_change (vault_key_id)
    where status = 'waiting' and iban_sealed is not null;

create table branding (
    merchant_id bigint primary key references merchant (id),
    accent text not null default '' check (accent ~ '^(#[0-9a-f]{6})?$'),
    logo bytea check (octet_length(logo) <= 204800),
    logo_type text not null default '' check (logo_type in ('', 'image/png', 'image/jpeg', 'image/webp')),
    changed_at timestamptz not null,
    check ((logo is null) = (logo_type = ''))
);
comment on table branding is 'how a merchant''s checkout page looks: a colour, a small picture';

create table api_call (
    merchant_id bigint not null,
    live boolean not null,
    request_key text not null,
    request_digest bytea not null,
    status integer,
    answer text,
    created_at timestamptz not null,
    leased_until timestamptz,
    primary key (merchant_id, live, request_key)
);
comment on table api_call is 'first answers to calls with an Idempotency-Key, kept for 7 days';
create index api_call_by_time on api_call (created_at);

-- Counts forms for the rate limit. Losing it in a crash costs nothing, so it writes no log.
create unlogged table form_count (
    merchant_id bigint not null,
    client_address text not null,
    minute timestamptz not null,
    forms integer not null,
    primary key (merchant_id, client_address, minute)
) with (fillfactor = 50);

create sequence rejected_form_id_seq;
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

-- Fields of checkout forms and deliveries that mean nothing here: names alone, for what they hold may be a person's.
create table ignored_field (
    merchant_id bigint not null references merchant (id),
    live boolean not null,
    sent_with text not null check (sent_with in ('form', 'delivery')),
    name text not null,
    first_at timestamptz not null,
    last_at timestamptz not null,
    primary key (merchant_id, live, sent_with, name)
);
comment on table ignored_field is 'unknown fields that a shop sends, one row per name, at most 100 of each kind';

-- Who has heavy work under way, so that nobody takes what others need.
create table share_of_work (
    id bigint generated always as identity primary key,
    work text not null,
    holders text[] not null,
    held_until timestamptz not null
);
comment on table share_of_work is 'work under way: one row each until it ends, or its lease runs out; few at any time';
comment on column share_of_work.holders is 'on whose account it is: person, owner, side of a merchant, client address';

-- The bank's record outlives a reset: what it did for attempts that are gone is still accounted for.
create table forgotten_attempt (
    merchant_id bigint not null references merchant (id),
    acquirer text not null,
    idempotency_key text not null,
    primary key (merchant_id, idempotency_key)
);
comment on table forgotten_attempt is 'test attempts that a reset of the test clock deleted';
