-- oldest code: 150
-- A subscription may go on as another package, or at another price, from its next period on. Until then it has no date
-- of its own, as with every open change, so that code of before charges it neither by the old terms nor too soon: it is
-- due again once its terms are the new ones.
alter table subscription_change add column package_version_id bigint;
alter table subscription_change add column period_number integer;
comment on column subscription_change.package_version_id is 'of a change of plan: the terms that it brings';
comment on column subscription_change.period_number is
    'of a change of plan that was carried out: the first period that is charged by its terms';
comment on column subscription_change.type is
    '''cancel'': it ends with the period that is paid; ''change'': its next period is of another plan; ''resume'': it is '
    'paused, and goes on then';
alter table subscription_change drop constraint subscription_change_type_check;
alter table subscription_change add constraint subscription_change_type_check
    check (type in ('cancel', 'change', 'resume')) not valid;
alter table subscription_change add constraint subscription_change_names_its_plan
    check ((type = 'change') = (package_version_id is not null)) not valid;
