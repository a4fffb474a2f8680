-- name: orders_to_ship(merchant_id, live, after_at, after_id, most)
-- Authorized orders, the one whose time is up first at the top.
select p.id as payment_id, p.merchant_order_id, p.amount, p.currency, p.ship_by, p.paid_at, m.kind as moving,
       u.first_name, u.last_name, u.email, u.country, coalesce(c.description, '') as description
  from payment p
  join customer u on u.merchant_id = p.merchant_id and u.live = p.live and u.id = p.customer_id
  left join checkout c on c.merchant_id = p.merchant_id and c.live = p.live and c.id = p.checkout_id
  left join movement m on m.merchant_id = p.merchant_id and m.live = p.live and m.id = p.moving_id
 where p.merchant_id = :merchant_id and p.live = :live and p.state = 'authorized' and p.ship_by is not null
   and (p.ship_by, p.id) > (:after_at, :after_id)
 order by p.ship_by, p.id
 limit :most;

-- name: newest_deliveries(merchant_id, live, before_id, most)
-- What was said of orders' goods, newest first.
select d.id, d.status, d.carrier, d.tracking_id, d.tracking_url, d.created_at as at, d.payment_id,
       p.merchant_order_id, p.state, p.amount, p.currency
  from delivery d
  join payment p on p.merchant_id = d.merchant_id and p.live = d.live and p.id = d.payment_id
 where d.merchant_id = :merchant_id and d.live = :live and d.id < :before_id
 order by d.id desc
 limit :most;
