-- oldest code: 150
-- When an account wants charges tried again that failed, where that is not the usual 6 hours, three times.
alter table merchant add column dunning_hours integer[] check (
    cardinality(dunning_hours) between 1 and 10 and 1 <= all (dunning_hours) and 720 >= all (dunning_hours));
alter table merchant add column dunning_by_reason boolean not null default false;
comment on column merchant.dunning_hours is
    'hours from a charge of a subscription that failed to its next try, one for each try; null: the usual ones';
comment on column merchant.dunning_by_reason is
    'whether the next try waits for a payday where money was missing, and for another card where one is of no use';
