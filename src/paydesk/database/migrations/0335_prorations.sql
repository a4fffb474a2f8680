-- oldest code: 150
-- Changes of plans within a period, prorated: what they come to stands in a balance of the subscription, and its next
-- renewals charge it. It is the merchant's word to the customer, and no money of the ledger's. Code of before would charge a
-- renewal without the balance: it is refused, and newer code charges it.
alter table subscription
    add column balance numeric(20, 4) not null default 0,
    add column charge_digits integer,
    add column least_charge numeric(20, 4);
comment on column subscription.balance is
    'what its next renewals charge besides their prices: the sum of its prorations and of into_balance of what was paid';
comment on column subscription.charge_digits is 'the decimals of its currency; known where there is a balance';
comment on column subscription.least_charge is 'what a renewal with a balance charges at least, or nothing; as charge_digits';

create table subscription_proration (
    merchant_id bigint not null,
    live boolean not null,
    subscription_id bigint not null,
    change_id bigint not null,
    period_number integer not null,
    began_at timestamptz not null,
    ends_at timestamptz not null,
    at timestamptz not null,
    old_price numeric(20, 4) not null,
    new_price numeric(20, 4) not null,
    given_back numeric(20, 4) not null,
    amount numeric(20, 4) not null,
    primary key (merchant_id, subscription_id, change_id),
    check (began_at < ends_at),
    -- Test data may be deleted as a whole when a test clock is reset; this goes with what it belongs to.
    foreign key (merchant_id, subscription_id) references subscription (merchant_id, id) on delete cascade
);
comment on table subscription_proration is 'what a change of plan within a paid period has put into the balance';
comment on column subscription_proration.given_back is
    'what was refunded or charged back of what was paid for the period, and no earlier change has counted';

create function next_charge(price numeric, balance numeric, digits integer, at_least numeric) returns numeric
    language sql immutable
    as $$
    select case when c.charge > 0 and c.charge >= at_least then c.charge else 0 end
      from (select trunc(price + balance, digits) as down, power(10::numeric, digits) as units) d
     cross join lateral (select (price + balance - d.down) * d.units as rest) r
     cross join lateral (
         select round(case when r.rest > 0.5 or r.rest = 0.5 and mod(d.down * d.units, 2) = 1 then d.down + 1 / d.units
                           else d.down end, digits) as charge
     ) c
    $$;
comment on function next_charge is 'what a renewal charges with a balance, rounded once, half-even';
