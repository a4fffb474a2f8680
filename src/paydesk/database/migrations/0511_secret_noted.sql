-- oldest code: 150
-- Cells must have the same secret key, or none finds what another entered; each notes by what its own is known again.
alter table deployment add column secret_print bytea;
comment on column deployment.secret_print is 'keyed fingerprint that tells one PAYDESK_SECRET_KEY from another; null: not noted yet';
