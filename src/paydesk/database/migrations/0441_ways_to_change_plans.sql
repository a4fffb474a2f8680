-- oldest code: 150
-- What customers may do with the plan of a subscription on their page, besides changing to an offered one later.
alter table merchant add column portal_plans text not null default 'period_end'
    check (portal_plans in ('now', 'period_end', 'both'));
alter table merchant add column portal_quantities boolean not null default false;
comment on column merchant.portal_plans is
    'when a plan holds that a customer changes to: at once, for what it costs more, with the next period, or as they choose';
comment on column merchant.portal_quantities is 'whether customers may change how many a subscription is of';
