-- name: find_shopper_page(merchant_id, live, id)^
-- What a link to a shopper's own page leads to.
select u.id, u.merchant_id, u.live, u.seed::text as seed, m.name as merchant_name, m.time_zone,
       b.changed_at as branded_at, coalesce(b.logo_type, '') <> '' as has_logo, shop_imprint(u.merchant_id) as imprint,
       side_clock(u.live, m.test_clock) as clock,
       (select count(*) from shopper_session b
         where b.merchant_id = u.merchant_id and b.live = u.live and b.shopper_id = u.id and b.expires_at > now())
           as browsers
  from shopper u
  join merchant m on m.id = u.merchant_id
  left join branding b on b.merchant_id = m.id
 where u.merchant_id = :merchant_id and u.live = :live and u.id = :id and u.erased_at is null;
