-- oldest code: 150
-- Charges of saved cards that a shop made without their customer, as that agreed to. Their payments have no checkout, as
-- renewals have none, and no subscription either.
alter table saved_instrument add column charge_revoked_at timestamptz;
comment on column saved_instrument.charge_revoked_at is 'when its customer took back that it may be charged without them';

create table instrument_charge (
    merchant_id bigint not null,
    live boolean not null,
    attempt_id bigint not null,
    payment_id bigint not null,
    instrument_id bigint not null,
    request_key text not null,
    description text not null,
    amount numeric(20, 4) not null,
    currency text not null,
    created_at timestamptz not null,
    primary key (merchant_id, attempt_id)
);
comment on column instrument_charge.request_key is 'the caller''s Idempotency-Key: one key is one charge';
create unique index instrument_charge_by_request on instrument_charge (merchant_id, live, request_key);
-- Serves the limit that was agreed to.
create index instrument_charge_by_instrument on instrument_charge (merchant_id, live, instrument_id, created_at);
create index instrument_charge_by_payment on instrument_charge (merchant_id, live, payment_id);

-- Serves the merchant's list of saved cards.
create index saved_instrument_by_time on saved_instrument (merchant_id, live, created_at, id) where removed_at is null;
