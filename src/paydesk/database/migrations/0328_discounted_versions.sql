-- oldest code: 150
alter table package_version
    add column list_version_id bigint,
    add column list_name text,
    add column discount_periods integer;
comment on column package_version.list_version_id is
    'of one that a coupon has made: the version at the price that it was taken off, which comes after it';
comment on column package_version.list_name is
    'of one that a coupon has made: its name as people read it, since its own is one that no form can send';
comment on column package_version.discount_periods is 'for how many regular payments it holds; null for all of them';
