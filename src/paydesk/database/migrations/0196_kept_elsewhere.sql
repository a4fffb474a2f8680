-- oldest code: 150
-- locks: acquirer_account, merchant
-- What acquirers sign their notifications to added accounts with; and what they keep of instruments that are to be
-- forgotten, until they have let go of it.
alter table acquirer_account add column webhook_sealed bytea;
alter table acquirer_account add column webhook_key_id text;
comment on column acquirer_account.webhook_sealed is 'the secrets of signatures of its notifications, separated by spaces';
create index acquirer_account_webhooks_under on acquirer_account (webhook_key_id) where webhook_sealed is not null;

create table kept_release (
    merchant_id bigint not null references merchant (id),
    live boolean not null,
    acquirer text not null,
    reference text not null,
    asked_at timestamptz not null,
    due_at timestamptz not null,
    tries integer not null default 0,
    leased_until timestamptz,
    primary key (merchant_id, live, acquirer, reference)
);
comment on table kept_release is 'instruments that acquirers are to let go of; a row goes once they have';
comment on column kept_release.reference is 'what the acquirer keeps it under';
create index kept_release_due on kept_release (due_at);
