-- oldest code: 150
-- Whether who buys by a payment link may use a coupon.
alter table payment_link add column coupons boolean not null default true;
comment on column payment_link.coupons is 'whether its customers may type a coupon, where merchant.types_coupons lets them';
