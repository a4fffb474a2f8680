-- oldest code: 150
-- Accounts at acquirers. What was made at one names it in its column `acquirer`, as it names that of the settings; a name
-- is never given to another account, and no row is ever removed, since older payments go on being served by it. Code of
-- before knows only the account of the settings: no account is added while it runs.
create sequence acquirer_account_id_seq;
create sequence acquirer_account_revision_seq;
create table acquirer_account (
    id bigint primary key default nextval('acquirer_account_id_seq'),
    name text not null unique,
    kind text not null,
    live boolean not null,
    for_merchant_id bigint references merchant (id),
    currencies text[] not null default '{}',
    address text not null default '',
    hosts_pages boolean not null default false,
    page_domain text not null default '',
    key_sealed bytea,
    vault_key_id text,
    key_print bytea unique,
    enabled boolean not null default true,
    revision bigint not null default nextval('acquirer_account_revision_seq'),
    serves_from timestamptz not null default clock_timestamp() + interval '15 seconds',
    created_at timestamptz not null,
    check ((key_sealed is null) = (vault_key_id is null))
);
comment on column acquirer_account.name is 'what stands in the column acquirer of all that was made there';
comment on column acquirer_account.for_merchant_id is 'it serves this merchant alone; null: everybody';
comment on column acquirer_account.currencies is 'in which it takes payments; none named: all';
comment on column acquirer_account.address is 'where it is asked, if not at the usual address of its kind';
comment on column acquirer_account.key_print is 'keyed HMAC of its secret key: no two accounts have the same';
comment on column acquirer_account.enabled is 'it takes new payments; what it took before it serves in any case';
comment on column acquirer_account.revision is 'another one with each change that a process must notice';
comment on column acquirer_account.serves_from is
    'by the clock of the database: until then some process may not know it';
create index acquirer_account_sealed_under on acquirer_account (vault_key_id) where key_sealed is not null;
