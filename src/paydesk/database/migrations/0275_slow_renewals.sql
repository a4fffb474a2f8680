-- oldest code: 150
-- locks: payment_attempt, card
-- A renewal may be pending for as long as its method takes, too. It comes up only once PAYDESK_SLOW_RENEWALS is on, which
-- all processes must understand first.
alter table payment_attempt add column sure_by timestamptz;
alter table card add column slow boolean not null default false;
comment on column payment_attempt.sure_by is
    'when the bank of a pending one knows at the latest whether it pays, in the shop''s time; null if it never was';
comment on column card.slow is 'what it is charged by later takes some days, such as a direct debit';
