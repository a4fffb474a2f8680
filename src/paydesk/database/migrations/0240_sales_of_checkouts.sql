-- oldest code: 150
-- What a checkout is to take from a payment link, if it is of one.
alter table checkout add column payment_link_id bigint, add column sale_quantity integer;
