-- name: agree_discounted(merchant_id, live, list_version_id, price, periods, now)$
-- The version of a package at the price that a coupon leaves, with all else as it is. Its name is one that no form can send,
-- so nobody comes upon it but by a coupon.
with fresh as (
    insert into package_version (merchant_id, live, package_id, name, currency, price, period_length, period_unit,
                                 trial_price, trial_length, trial_unit, payment_limit, created_at, list_version_id,
                                 list_name, discount_periods, quantity, unit_price)
    select merchant_id, live, package_id, discounted_name(name, id, :periods::integer), currency, :price,
           period_length, period_unit, trial_price, trial_length, trial_unit, payment_limit, :now, id,
           coalesce(list_name, name), :periods::integer, quantity, unit_price
      from package_version
     where merchant_id = :merchant_id and live = :live and id = :list_version_id and list_version_id is null
        on conflict (merchant_id, live, package_id, price, currency, period_length, period_unit, trial_price,
                     trial_length, trial_unit, payment_limit, name)
        do update set name = excluded.name
 returning id
)
select id from fresh;
