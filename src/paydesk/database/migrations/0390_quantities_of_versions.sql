-- oldest code: 150
-- Subscriptions to several of a thing. A version of a package for so many of it is a version like any other, at what they
-- cost together; so code of before charges the right price. How many, and what one costs, stands beside it.
alter table package_version
    add column quantity integer not null default 1,
    add column unit_price numeric(20, 4);
comment on column package_version.quantity is 'how many of it are paid for';
comment on column package_version.unit_price is
    'of one for several: what one costs in a period without a coupon; the price is of all of them together';

-- As with discounted_name: one that no form can send, and that reads as the name it begins with.
create function quantity_name(name text, quantity integer) returns text
    language sql immutable
    return case when quantity = 1 then name else discounted_name(name, 0, quantity) end;
