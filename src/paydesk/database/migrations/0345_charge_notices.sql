-- oldest code: 150
-- Who wants it tells customers some days before a trial ends, before a charge by other terms, and before one for a year or
-- longer. What is told of a subscription is on its row, so that nothing is told twice; code of before reads none of it, and
-- what it writes keeps it right by the triggers.
alter table merchant add column charge_notice_days integer check (charge_notice_days between 1 and 90);
comment on column merchant.charge_notice_days is
    'how many days before such a charge its customer is told of it; null: not at all';
