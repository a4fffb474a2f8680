-- oldest code: 150
-- Each table that is in use all day has a step of its own: none waits for one lock while it holds another.
alter table checkout add column coupon_id bigint, add column undiscounted_id bigint;
comment on column checkout.undiscounted_id is 'of one with a coupon: the one of the same order without it';
