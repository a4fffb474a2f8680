-- name: list_links(merchant_id, live, id, before, most)
-- One, or those below an id, newest first, each with what was sold by it: what is being paid counts, what came to
-- nothing doesn't. What was paid is that of first payments.
select l.id, l.seed, l.title, l.description, l.picture, l.large_picture, l.currency, l.price, l.monthly_price,
       l.yearly_price, l.most_quantity, l.most_sales, l.success_url, l.coupons, l.plans, l.active or l.plans_on as active,
       l.created_at,
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

-- name: make_link(merchant_id, live, seed, title, description, picture, large_picture, currency, price, monthly_price, yearly_price, most_quantity, most_sales, success_url, coupons, plans, most, now)$
insert into payment_link (merchant_id, live, seed, title, description, picture, large_picture, currency, price,
                          monthly_price, yearly_price, most_quantity, most_sales, success_url, coupons, plans, active,
                          plans_on, created_at, changed_at)
select :merchant_id, :live, :seed, :title, :description, :picture, :large_picture, :currency, :price,
       :monthly_price, :yearly_price, :most_quantity, :most_sales, :success_url, :coupons, :plans::jsonb,
       :plans::jsonb is null, :plans::jsonb is not null, :now, :now
 where (select count(*) from payment_link where merchant_id = :merchant_id and live = :live) < :most
returning id;

-- name: change_link(merchant_id, live, id, title, description, picture, large_picture, price, monthly_price, yearly_price, most_quantity, most_sales, success_url, coupons, plans, now)!
update payment_link
   set title = :title, description = :description, picture = :picture, large_picture = :large_picture,
       price = :price, monthly_price = :monthly_price, yearly_price = :yearly_price, most_quantity = :most_quantity,
       most_sales = :most_sales, success_url = :success_url, coupons = :coupons, plans = :plans::jsonb,
       changed_at = :now
 where merchant_id = :merchant_id and live = :live and id = :id;

-- name: switch_link(merchant_id, live, id, active, now)!
update payment_link
   set active = :active and plans is null, plans_on = :active and plans is not null, changed_at = :now
 where merchant_id = :merchant_id and live = :live and id = :id;

-- name: sells_several(merchant_id)$
-- Whether the account sells subscriptions to several of a thing.
select signs_quantities from merchant where id = :merchant_id;

-- name: list_sellable(merchant_id, live, chosen, most, most_versions)
-- The newest versions of the newest packages, and those that are chosen already: at their list price, and of one.
with newest as materialized (
    select id
      from subscription_package
     where merchant_id = :merchant_id and live = :live
     order by id desc
     limit :most
)
select t.*
  from (select v.id
          from newest k
         cross join lateral (
             select id
               from package_version
              where merchant_id = :merchant_id and live = :live and package_id = k.id and list_version_id is null
                and quantity = 1
              order by id desc
              limit :most_versions
         ) v
         union
        select unnest(:chosen::bigint[])) shown
  join package_terms t on t.merchant_id = :merchant_id and t.live = :live and t.package_version_id = shown.id
 where t.list_price is null and t.quantity = 1
 order by t.package_id desc, t.package_version_id desc;

-- name: list_pages(merchant_id, live, package_id)
-- The links that sell a package, by any version of it.
select l.id, l.title, l.currency, l.plans
  from payment_link l
 where l.merchant_id = :merchant_id and l.live = :live and l.plans is not null
   and exists (select
                 from package_version v
                where v.merchant_id = l.merchant_id and v.live = l.live and v.package_id = :package_id
                  and l.plans @@ ('$.plans[*].versions[*] == ' || v.id)::jsonpath)
 order by l.id;

-- name: set_plans(merchant_id, live, id, plans, now)!
update payment_link
   set plans = :plans::jsonb, changed_at = :now
 where merchant_id = :merchant_id and live = :live and id = :id and plans is not null;
