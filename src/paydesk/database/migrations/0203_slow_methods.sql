-- oldest code: 150
-- locks: merchant, card_change
-- A merchant chooses whether its customers may pay by methods whose money is sure only in some days; the operator's
-- setting allows that at all. And the page of a card change may be asked for sooner than it would be, but no more often
-- than that of a payment (hosted_page.looked_at).
alter table merchant add column slow_methods boolean not null default false;
alter table card_change add column page_looked_at timestamptz;
comment on column merchant.slow_methods is
    'its customers may pay by methods whose money is sure only in some days, where the operator allows that';
comment on column card_change.page_looked_at is
    'when its acquirer was last asked about it, in real time; null if it was not yet';
