-- oldest code: 150
-- locks: coupon, package_version
-- A coupon may take all of a price: what is charged by it is a version that costs nothing. Code of before makes none, and
-- charges such a version as what a balance covers: nothing, and no acquirer is asked.
alter table coupon drop constraint coupon_percent_check,
    add constraint coupon_percent_check check (percent > 0 and percent <= 100) not valid;
alter table package_version drop constraint package_version_price_check,
    add constraint package_version_price_check check (price > 0 or price = 0 and list_version_id is not null) not valid;
