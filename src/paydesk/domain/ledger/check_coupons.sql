-- Rules about coupons; each as in check_payments.sql.

-- name: coupons_kept(merchant_id)
-- No coupon is used more often than it may be, and an order that is paid at the price of a coupon has used it.
select 'coupon' as table_name, q.merchant_id, q.id,
       format('may be used %s times, but %s payments have', q.most_uses, u.uses) as detail
  from coupon q
 cross join lateral (
     select uses_of(q.merchant_id, q.live, q.id, 0) as uses
 ) u
 where (:merchant_id::bigint is null or q.merchant_id = :merchant_id) and u.uses > q.most_uses
 union all
select 'checkout', c.merchant_id, c.id, format('was paid with coupon %s, which it has not used', c.coupon_id)
  from checkout c
  join payment p
    on p.merchant_id = c.merchant_id and p.live = c.live and p.merchant_order_id = c.merchant_order_id
   and not p.renewal and p.checkout_id = c.id and p.paid_at is not null
  left join coupon_use u on u.merchant_id = c.merchant_id and u.checkout_id = c.id
 where (:merchant_id::bigint is null or c.merchant_id = :merchant_id) and c.coupon_id is not null
   and u.coupon_id is distinct from c.coupon_id;

-- name: discounts_kept(merchant_id)
-- A subscription with a coupon is charged what that leaves for so many regular payments, and the list price from then on,
-- unless it has come to another plan before; one-off items are charged besides.
with begun as (
    select s.merchant_id, s.live, s.id, v.price, l.price as list_price, v.discount_periods, v.currency,
           (select min(g.period_number)
              from subscription_change g
             where g.merchant_id = s.merchant_id and g.live = s.live and g.subscription_id = s.id
               and g.type = 'change' and g.state = 'done') as changed_from
      from package_version v
      join package_version l on l.merchant_id = v.merchant_id and l.id = v.list_version_id
      join checkout c on c.merchant_id = v.merchant_id and c.live = v.live and c.package_version_id = v.id
      join payment i
        on i.merchant_id = c.merchant_id and i.live = c.live and i.merchant_order_id = c.merchant_order_id
       and not i.renewal and i.checkout_id = c.id
      join subscription s on s.merchant_id = i.merchant_id and s.live = i.live and s.init_payment_id = i.id
     where (:merchant_id::bigint is null or v.merchant_id = :merchant_id) and v.list_version_id is not null
)
select 'payment' as table_name, p.merchant_id, p.id,
       format('for period %s of subscription %s is of %s %s, but its coupon leaves %s for %s periods of %s', p.period_number,
              b.id, p.amount + coalesce(p.into_balance, 0), p.currency, b.price, coalesce(b.discount_periods::text, 'all'), b.list_price) as detail
  from begun b
  join payment p
    on p.merchant_id = b.merchant_id and p.live = b.live and p.subscription_id = b.id and p.period_number > 0
 cross join lateral (
     select case when p.period_number <= coalesce(b.discount_periods, p.period_number) then b.price
                 else b.list_price end as price
 ) c
 where p.period_number < coalesce(b.changed_from, p.period_number + 1)
   and (p.amount + coalesce(p.into_balance, 0), p.currency)
       is distinct from (case when p.into_balance is null then taken(c.price, b.currency, b.live) else c.price end,
                         b.currency);

-- name: quantities_kept(merchant_id)
-- A version for several of a thing costs that many times what one costs, and a coupon changes neither. Its subscriptions are
-- charged that price, as any.
select 'package_version' as table_name, v.merchant_id, v.id,
       format('costs %s %s for %s of it, but one costs %s', l.price, l.currency, v.quantity, v.unit_price) as detail
  from package_version v
  join package_version l on l.merchant_id = v.merchant_id and l.id = coalesce(v.list_version_id, v.id)
 where (:merchant_id::bigint is null or v.merchant_id = :merchant_id)
   and ((v.quantity, v.unit_price) is distinct from (l.quantity, l.unit_price)
        or v.quantity < 1 or (v.quantity > 1) <> (v.unit_price is not null)
        or coalesce(v.unit_price, l.price) * v.quantity <> l.price);
