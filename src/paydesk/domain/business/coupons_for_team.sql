-- name: find_settings(merchant_id)^
select types_coupons, signs_coupons from merchant where id = :merchant_id;

-- name: save_settings(merchant_id, types_coupons, signs_coupons)!
update merchant set types_coupons = :types_coupons, signs_coupons = :signs_coupons where id = :merchant_id;
