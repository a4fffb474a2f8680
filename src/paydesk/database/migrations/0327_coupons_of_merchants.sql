-- oldest code: 150
alter table merchant
    add column types_coupons boolean not null default false,
    add column signs_coupons boolean not null default false;
comment on column merchant.types_coupons is 'whether customers may type a coupon on the checkout page';
comment on column merchant.signs_coupons is 'whether recurring_coupon is read in forms';
