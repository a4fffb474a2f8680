-- name: list_links(merchant_id, live, id, before, most)
-- One, or those below an id, newest first, each with what was sold by it: what is being paid counts, what came to
-- nothing doesn't. What was paid is that of first payments.
select l.id, l.seed, l.title, l.description, l.picture, l.large_picture, l.currency, l.price, l.monthly_price,
       l.yearly_price, l.most_quantity, l.most_sales, l.success_url, l.coupons, l.active, l.created_at,
       sales_of(l.merchant_id, l.live, l.id, 0)::integer as sold,
       coalesce((select sum(p.amount)
                   from payment_link_sale s
                   join payment p
                     on p.merchant_id = s.merchant_id and p.live = s.live
                    and p.merchant_order_id = s.merchant_order_id and not p.renewal and p.checkout_id = s.checkout_id
                  where s.merchant_id = l.merchant_id and s.live = l.live and s.link_id = l.id
                    and p.state in ('authorized', 'captured', 'partially_refunded', 'refunded', 'charged_back')), 0) as paid
  from payment_link l
 where l.merchant_id = :merchant_id and l.live = :live
   and (:id::bigint is null or l.id = :id) and (:before::bigint is null or l.id < :before)
 order by l.id desc
 limit :most;

-- name: make_link(merchant_id, live, seed, title, description, picture, large_picture, currency, price, monthly_price, yearly_price, most_quantity, most_sales, success_url, coupons, most, now)$
insert into payment_link (merchant_id, live, seed, title, description, picture, large_picture, currency, price,
                          monthly_price, yearly_price, most_quantity, most_sales, success_url, coupons, created_at,
                          changed_at)
select :merchant_id, :live, :seed, :title, :description, :picture, :large_picture, :currency, :price,
       :monthly_price, :yearly_price, :most_quantity, :most_sales, :success_url, :coupons, :now, :now
 where (select count(*) from payment_link where merchant_id = :merchant_id and live = :live) < :most
returning id;

-- name: change_link(merchant_id, live, id, title, description, picture, large_picture, price, monthly_price, yearly_price, most_quantity, most_sales, success_url, coupons, now)!
update payment_link
   set title = :title, description = :description, picture = :picture, large_picture = :large_picture,
       price = :price, monthly_price = :monthly_price, yearly_price = :yearly_price, most_quantity = :most_quantity,
       most_sales = :most_sales, success_url = :success_url, coupons = :coupons, changed_at = :now
 where merchant_id = :merchant_id and live = :live and id = :id;

-- name: switch_link(merchant_id, live, id, active, now)!
update payment_link
   set active = :active, changed_at = :now
 where merchant_id = :merchant_id and live = :live and id = :id;
