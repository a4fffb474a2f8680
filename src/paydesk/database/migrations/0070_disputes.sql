-- Disputes as banks have them: above the charge, in another currency, partly won, taken again, of a payment that was
-- given back already, and of attempts that do not hold their payment.

-- A bank takes back what it takes back. That our own refunds never exceed what is left is guarded where they begin.
alter table payment
    drop constraint if exists payment_check1,
    drop constraint if exists payment_charged_back_check;
comment on column payment.charged_back is 'what chargebacks took and did not return: may be more than was paid';

alter table chargeback
    drop constraint if exists chargeback_state_check,
    drop constraint if exists chargeback_check,
    add column disputed_amount numeric(20, 4),
    add column disputed_currency text,
    add column taken numeric(20, 4) not null default 0 check (taken >= 0),
    add column returned numeric(20, 4) not null default 0 check (returned >= 0),
    add column takes integer not null default 0,
    add column returns integer not null default 0,
    add column aside boolean not null default false,
    add column ends_subscription boolean not null default false,
    add column told_at timestamptz,
    add column asked_at timestamptz not null default now();
comment on column chargeback.amount is 'what is disputed, in the payment''s currency';
comment on column chargeback.disputed_amount is 'what is disputed, in the dispute''s own currency; null: as amount';
comment on column chargeback.taken is 'all that the bank took for it so far, in the payment''s currency';
comment on column chargeback.returned is 'all that the bank gave back of that';
comment on column chargeback.takes is 'in how many steps it was taken: each is one posting, and one pingback';
comment on column chargeback.aside is 'of an attempt whose money the payment does not have: it is not in charged_back';
comment on column chargeback.ends_subscription is 'the subscription behind it is still to be ended';
comment on column chargeback.told_at is 'when it stood so, by the acquirer, in real time';
comment on column chargeback.asked_at is 'when the acquirer was last asked how it stands, in real time';

update chargeback
   set taken = amount, takes = 1,
       returned = case when state = 'won' then amount else 0 end,
       returns = case when state = 'won' then 1 else 0 end,
       ends_subscription = state in ('open', 'lost');

alter table chargeback
    add constraint chargeback_state_check check (state in ('inquiry', 'open', 'won', 'lost', 'dropped')),
    add constraint chargeback_closed_check check ((state in ('inquiry', 'open')) = (closed_at is null));

drop index chargeback_open;
-- Serves the end of the subscriptions behind chargebacks.
create index chargeback_ending on chargeback (merchant_id, id) where ends_subscription;
-- Serves the daily question how each stands that is not over.
create index chargeback_to_ask on chargeback (acquirer, asked_at)
    where state in ('inquiry', 'open') or state = 'won' and returned < taken;

-- A bank may take and return more than once: each step is told.
alter table pingback add column reversal_step integer not null default 1;
comment on column pingback.reversal_step is 'the step of a chargeback that it tells of: the first time it was taken, the second';
drop index pingback_of_reversal;
create unique index pingback_of_reversal on pingback (merchant_id, live, reversal_id, event, reversal_step)
    where reversal_id is not null;

alter table dispute_reading add column began_at timestamptz not null default now();
comment on column dispute_reading.read_at is 'when a reading last came to its end';

create table dispute_waiting (
    acquirer text not null,
    acquirer_reference text not null,
    told jsonb not null,
    reason text not null,
    first_at timestamptz not null,
    last_at timestamptz not null,
    next_at timestamptz not null,
    tries integer not null default 1,
    primary key (acquirer, acquirer_reference)
);
comment on table dispute_waiting is 'disputes as they were last told that can''t be booked yet, or not at all, and why';
-- Serves the claim of those to be tried again.
create index dispute_waiting_due on dispute_waiting (acquirer, next_at);
