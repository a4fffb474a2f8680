-- name: seed_of_open(merchant_id, live, id)$
-- By what a payment link is opened that still sells.
select seed from payment_link where merchant_id = :merchant_id and live = :live and id = :id and active;

-- name: find_payment_link(merchant_id, live, id)^
-- A payment link with all that its page needs.
select l.title, l.description, l.picture, l.large_picture, l.currency, l.price, l.monthly_price, l.yearly_price,
       l.most_quantity, l.most_sales, l.success_url, l.coupons, l.seed, l.active, l.changed_at,
       case when l.most_sales is not null
            then greatest(0, l.most_sales - sales_of(l.merchant_id, l.live, l.id, 0))::integer end as left,
       m.name as merchant_name, l.live and m.suspended_at is not null as suspended,
       b.changed_at as branded_at, coalesce(b.logo_type, '') <> '' as has_logo,
       shop_imprint(l.merchant_id) as imprint
  from payment_link l
  join merchant m on m.id = l.merchant_id
  left join branding b on b.merchant_id = l.merchant_id
 where l.merchant_id = :merchant_id and l.live = :live and l.id = :id;
