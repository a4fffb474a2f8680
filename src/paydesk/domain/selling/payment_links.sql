-- name: link_selling(merchant_id, live, id, sku_id)^
-- By what a payment link is opened that sells now: that of an id, or the newest with a version of a package.
select l.id, l.seed
  from payment_link l
 where l.merchant_id = :merchant_id and l.live = :live
   and (l.active and l.id = :id::bigint
        or l.plans_on
           and exists (select
                         from subscription_package k
                         join package_version v on v.merchant_id = k.merchant_id and v.live = k.live and v.package_id = k.id
                        where k.merchant_id = l.merchant_id and k.live = l.live and k.sku_id = :sku_id
                          and l.plans @@ ('$.plans[*].versions[*] == ' || v.id)::jsonpath))
 order by l.id desc
 limit 1;

-- name: find_payment_link(merchant_id, live, id)^
-- A payment link with all that its page needs.
select l.title, l.description, l.picture, l.large_picture, l.currency, l.price, l.monthly_price, l.yearly_price,
       l.most_quantity, l.most_sales, l.success_url, l.coupons, l.plans, l.seed, l.active or l.plans_on as active,
       l.changed_at, m.signs_quantities as several,
       case when l.most_sales is not null
            then greatest(0, l.most_sales - sales_of(l.merchant_id, l.live, l.id, 0))::integer end as left,
       m.name as merchant_name, l.live and m.suspended_at is not null as suspended,
       b.changed_at as branded_at, coalesce(b.logo_type, '') <> '' as has_logo,
       shop_imprint(l.merchant_id) as imprint
  from payment_link l
  join merchant m on m.id = l.merchant_id
  left join branding b on b.merchant_id = l.merchant_id
 where l.merchant_id = :merchant_id and l.live = :live and l.id = :id;
