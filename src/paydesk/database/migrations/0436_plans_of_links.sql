-- oldest code: 150
-- A payment link may sell packages: chosen versions, side by side. Code of before must not offer such a link, which it has
-- no price for, so `active` stays false, and `plans_on` says whether it sells.
alter table payment_link
    add column plans jsonb,
    add column plans_on boolean not null default false,
    drop constraint payment_link_check,
    add constraint payment_link_sells check (
        plans is null and not plans_on
            and (price is not null and monthly_price is null and yearly_price is null
                 or price is null and coalesce(monthly_price, yearly_price) is not null)
        or plans is not null and not active and coalesce(price, monthly_price, yearly_price) is null) not valid;
comment on column payment_link.active is 'whether it sells, at prices of its own';
comment on column payment_link.plans is 'the packages that it sells instead, each with its versions; null where it has prices of its own';
comment on column payment_link.plans_on is 'whether it sells, by its plans';
