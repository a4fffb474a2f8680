-- oldest code: 150
-- locks: payment, hosted_page
-- A payment by a slow method is pending until its bank has sent the money, or has not. Code of before can't read the
-- state: it comes up only once PAYDESK_SLOW_METHODS is on, which all processes must understand first.
alter table payment
    drop constraint payment_state_check,
    add constraint payment_state_is_known check (state in (
        'processing', 'challenged', 'pending', 'declined', 'authorized', 'captured', 'voided',
        'partially_refunded', 'refunded', 'charged_back')) not valid;
alter table hosted_page
    add column slow boolean not null default false,
    add column sure_by timestamptz,
    add column mailed boolean;
comment on column hosted_page.slow is 'methods were offered whose money may be sure only in some days';
comment on column hosted_page.sure_by is
    'when the bank of a pending payment will know at the latest whether it pays, by the shop''s time';
comment on column hosted_page.mailed is
    'whether its customer was told that a pending payment came to nothing; null while there is nothing to tell';
-- Serves the test clock, which stops at these moments.
create index hosted_page_to_be_sure on hosted_page (merchant_id, live, sure_by) where sure_by is not null;
create index hosted_page_to_mail on hosted_page (merchant_id, attempt_id) where not mailed;
