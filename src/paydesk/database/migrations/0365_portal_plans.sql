-- oldest code: 150
-- Plans that customers may change to on their page; none unless their merchant offers them.
alter table package_version add column portal_offered boolean not null default false;
comment on column package_version.portal_offered is 'whether customers with a subscription may change to it on their page';
