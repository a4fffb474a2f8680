-- oldest code: 150
-- locks: merchant
-- Customers who come back: a shopper is an e-mail address of one side of a shop, proved by a code. A payment keeps its
-- payer's own words in its own row of customer; nothing here is filled by guests.
alter table merchant add column saves_cards boolean not null default false;
comment on column merchant.saves_cards is 'its customers may prove an address and save a card for their next visit';

create sequence shopper_id_seq;
create table shopper (
    merchant_id bigint not null references merchant (id),
    live boolean not null,
    id bigint not null default nextval('shopper_id_seq'),
    email text not null,
    seed uuid not null default gen_random_uuid(),
    proved_at timestamptz not null,
    erased_at timestamptz,
    primary key (merchant_id, id)
);
comment on table shopper is 'an e-mail address of one side of a shop that was proved by a code';
comment on column shopper.seed is 'what a link to the shopper''s own page is made from';
comment on column shopper.proved_at is 'when it was last proved';
create unique index shopper_by_email on shopper (merchant_id, live, lower(email)) where erased_at is null;

-- One code for an address at a time, and for a browser.
create table shopper_code (
    merchant_id bigint not null,
    live boolean not null,
    address bytea not null,
    browser bytea not null,
    email text not null,
    code bytea not null,
    tries smallint not null default 0,
    expires_at timestamptz not null,
    primary key (merchant_id, live, address)
);
comment on column shopper_code.address is 'keyed HMAC of the address';
comment on column shopper_code.browser is 'keyed HMAC of the secret of the browser that asked: no other may use the code';
comment on column shopper_code.code is 'keyed HMAC of code, browser and address';
comment on column shopper_code.tries is 'counted before they are judged';
create unique index shopper_code_by_browser on shopper_code (merchant_id, live, browser);
create index shopper_code_by_end on shopper_code (expires_at);

-- How many codes were asked for: by address, by client and by merchant.
create table shopper_count (
    subject bytea primary key,
    times integer not null,
    until timestamptz not null
);
comment on column shopper_count.subject is 'keyed HMAC of what is counted';
create index shopper_count_by_end on shopper_count (until);

create sequence shopper_session_id_seq;
create table shopper_session (
    merchant_id bigint not null,
    live boolean not null,
    id bigint not null default nextval('shopper_session_id_seq'),
    shopper_id bigint not null,
    token bytea not null,
    previous bytea,
    rotated_at timestamptz not null,
    remembered boolean not null,
    created_at timestamptz not null,
    expires_at timestamptz not null,
    primary key (merchant_id, id)
);
comment on table shopper_session is 'a browser in which an address was proved';
comment on column shopper_session.token is 'keyed HMAC of the token in the cookie';
comment on column shopper_session.previous is 'that of the token before: who comes with it late has a stolen one';
create unique index shopper_session_by_token on shopper_session (merchant_id, live, token);
create index shopper_session_by_previous on shopper_session (merchant_id, live, previous) where previous is not null;
create index shopper_session_by_shopper on shopper_session (merchant_id, live, shopper_id);
create index shopper_session_by_end on shopper_session (expires_at);

-- It is of use once its attempt is approved, and as long as it was not removed.
create sequence saved_instrument_id_seq;
create table saved_instrument (
    merchant_id bigint not null,
    live boolean not null,
    id bigint not null default nextval('saved_instrument_id_seq'),
    shopper_id bigint not null,
    card_id bigint not null,
    attempt_id bigint not null,
    acquirer text not null,
    keep_wording text not null default '',
    keep_agreed_at timestamptz,
    charge_wording text not null default '',
    charge_agreed_at timestamptz,
    charge_for text not null default '',
    charge_limit numeric(20, 4),
    charge_currency text not null default '',
    created_at timestamptz not null,
    used_at timestamptz not null,
    removed_at timestamptz,
    primary key (merchant_id, id)
);
comment on table saved_instrument is 'a card that a shopper agreed to have kept; its number is in its card, sealed';
comment on column saved_instrument.keep_wording is 'what was agreed to: it is offered at the next visit; empty if not, or no more';
comment on column saved_instrument.charge_wording is
    'what was agreed to: the shop may charge it without its customer; empty if not, or no more';
comment on column saved_instrument.charge_limit is 'the most that may be charged so within 30 days';
create unique index saved_instrument_by_attempt on saved_instrument (merchant_id, attempt_id);
create index saved_instrument_by_shopper on saved_instrument (merchant_id, live, shopper_id);
create index saved_instrument_by_card on saved_instrument (merchant_id, card_id);

create or replace view card_number_needed as
select merchant_id, card_id from subscription where date_next is not null
 union
select a.merchant_id, a.card_id
  from payment_attempt a
  join checkout k on k.merchant_id = a.merchant_id and k.id = a.checkout_id
 where a.lookup_at is not null and a.state in ('processing', 'challenged') and k.package_version_id is not null
 union
select merchant_id, card_id from card_change where lookup_at is not null and state in ('processing', 'challenged')
 union
select s.merchant_id, s.card_id
  from saved_instrument s
  join payment_attempt a on a.merchant_id = s.merchant_id and a.id = s.attempt_id
 where s.removed_at is null and a.state in ('processing', 'challenged', 'approved');
comment on view card_number_needed is
    'cards that are saved, that a subscription will be charged by, or may begin with once an outcome is known';
