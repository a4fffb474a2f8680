-- oldest code: 150
-- locks: coupon, package_version
alter table coupon validate constraint coupon_percent_check;
alter table package_version validate constraint package_version_price_check;
