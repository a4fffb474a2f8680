-- The signature version that a merchant's programmer sees in the code to copy; forms always say their own.
alter table merchant
    add column sign_version text not null default 'v2' check (sign_version in ('v1', 'v2'));
comment on column merchant.sign_version is 'of the integration code that the account shows; each form says its own';
