-- What a live merchant wants to change of its business profile: a version of its own, until an operator has seen it. The
-- accepted one (business_profile) stays in force meanwhile.

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

alter table business_profile add column payouts_from timestamptz;
comment on column business_profile.payouts_from is 'when payouts to a newly accepted bank account may begin';
