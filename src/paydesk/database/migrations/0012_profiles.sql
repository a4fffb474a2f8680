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
    reason text not null default ''
);
comment on column business_profile.iban_sealed is 'AES-256-GCM under vault_key_id, bound to the merchant';
comment on column business_profile.decided_by is 'the operator (a person), null for the command line';
comment on column business_profile.reason is 'why it was refused, as the merchant reads it';
-- Serves the operator's list of who waits.
create index business_profile_waiting on business_profile (submitted_at, merchant_id) where status = 'submitted';

create table branding (
    merchant_id bigint primary key references merchant (id),
    accent text not null default '' check (accent ~ '^(#[0-9a-f]{6})?$'),
    logo bytea check (octet_length(logo) <= 204800),
    logo_type text not null default '' check (logo_type in ('', 'image/png', 'image/jpeg', 'image/webp')),
    changed_at timestamptz not null,
    check ((logo is null) = (logo_type = ''))
);
comment on table branding is 'how a merchant''s checkout page looks: a colour, a small picture';
