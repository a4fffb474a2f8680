-- oldest code: 150
-- What customers may do with a subscription on their page, besides replacing what is charged.
alter table merchant add column portal_cancels text not null default 'now'
    check (portal_cancels in ('now', 'period_end', 'both'));
alter table merchant add column portal_pauses boolean not null default false;
comment on column merchant.portal_cancels is
    'when a subscription ends that its customer cancels: at once, with the period that is paid, or as they choose';
comment on column merchant.portal_pauses is 'whether customers may pause a subscription';
