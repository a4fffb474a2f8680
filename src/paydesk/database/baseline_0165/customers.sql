-- Customers and their cards: who buys from a merchant, and by what.

-- Personal data stands in rows of its own, so that it can be erased while ledger and payments stay.
create sequence customer_id_seq;
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
    language text not null default 'en',
    primary key (merchant_id, id)
);
comment on column customer.language is
    'the language of the checkout page, as a tag such as de-CH; mails are written in it';
create index customer_by_email on customer (merchant_id, live, lower(email));

create sequence card_id_seq;
create table card (
    merchant_id bigint not null references merchant (id),
    live boolean not null,
    id bigint not null default nextval('card_id_seq'),
    number_sealed bytea,
    vault_key_id text not null,
    fingerprint bytea not null default '',
    bin text not null,
    last4 text not null,
    brand text not null,
    exp_month smallint not null,
    exp_year smallint not null,
    holder text not null,
    created_at timestamptz not null,
    erased_at timestamptz,
    refused_as text not null default '',
    primary key (merchant_id, id)
);
comment on column card.number_sealed is 'AES-256-GCM under vault_key_id, bound to merchant and row';
comment on column card.fingerprint is 'no longer written; empty';
comment on column card.refused_as is 'a hard decline (stolen, closed): the card is not put to the network again';
-- Serves the search for the last four digits of a card: its payments at checkouts, and the renewals that followed.
create index card_by_last4 on card (merchant_id, live, last4, id);
-- Serves the walks over what is sealed; few cards are.
create index card_sealed on card (merchant_id, id) where number_sealed is not null;
create index card_sealed_under on card (vault_key_id) where number_sealed is not null;
