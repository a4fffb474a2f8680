-- Moving a merchant's test clock, and starting its test side anew.

alter table merchant
    add column clock_holder text not null default '',
    add column clock_held_until timestamptz;
comment on column merchant.clock_holder is 'who is moving the test clock: a lease in database time, so that one at a time does';

-- The bank's record outlives a reset: what it did for attempts that are gone is still accounted for.
create table forgotten_attempt (
    merchant_id bigint not null references merchant (id),
    acquirer text not null,
    idempotency_key text not null,
    primary key (merchant_id, idempotency_key)
);
comment on table forgotten_attempt is 'test attempts that a reset of the test clock deleted';
