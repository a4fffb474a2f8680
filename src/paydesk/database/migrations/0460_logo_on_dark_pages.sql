-- oldest code: 150
-- A logo that takes the place of the other where a customer's page or mail is dark. Code of before leaves it as it is.
alter table branding add column dark_logo bytea check (octet_length(dark_logo) <= 204800);
alter table branding add column dark_logo_type text not null default ''
    check (dark_logo_type in ('', 'image/png', 'image/jpeg', 'image/webp'));
