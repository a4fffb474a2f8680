-- name: make_coupon(merchant_id, live, code, percent, amount, currency, periods, valid_from, valid_until, most_uses, most_per_customer, skus, most, now)$
-- No row comes back if the code is taken, or there are too many.
insert into coupon (merchant_id, live, code, percent, amount, currency, periods, valid_from, valid_until, most_uses,
                    most_per_customer, skus, created_at)
select :merchant_id, :live, :code, :percent, :amount, :currency, :periods, :valid_from, :valid_until, :most_uses,
       :most_per_customer, :skus::text[], :now
 where (select count(*) from coupon where merchant_id = :merchant_id and live = :live) < :most
    on conflict (merchant_id, live, code) do nothing
returning id;

-- name: list_coupons(merchant_id, live, before_at, before_id, since, until, most)
-- Newest first, a page; it is cut before uses are counted.
select q.id, q.code, q.percent, q.amount, q.currency, q.periods, q.valid_from, q.valid_until, q.most_uses,
       q.most_per_customer, q.skus, q.active, q.created_at, uses_of(q.merchant_id, q.live, q.id, 0) as uses
  from (select *
          from coupon
         where merchant_id = :merchant_id and live = :live
           and (created_at, id) < (:before_at::timestamptz, :before_id::bigint)
           and created_at >= :since and created_at < :until
         order by created_at desc, id desc
         limit :most) q
 order by q.created_at desc, q.id desc;

-- name: find_coupon(merchant_id, live, id)^
select id, code, percent, amount, currency, periods, valid_from, valid_until, most_uses, most_per_customer, skus,
       active, created_at, uses_of(merchant_id, live, id, 0) as uses
  from coupon
 where merchant_id = :merchant_id and live = :live and id = :id;

-- name: find_by_code(merchant_id, live, code)^
select id, code, percent, amount, currency, periods, valid_from, valid_until, most_uses, most_per_customer, skus,
       active, created_at, uses_of(merchant_id, live, id, 0) as uses
  from coupon
 where merchant_id = :merchant_id and live = :live and code = :code;

-- name: switch_coupon(merchant_id, live, id, active)!
update coupon set active = :active where merchant_id = :merchant_id and live = :live and id = :id;

-- name: is_open(merchant_id, live, id, request_digest, at)$
-- Whether a coupon can be used for an order, as far as can be said before it is known who pays, or has been used for it, at
-- the checkout that it makes.
with reduced as (
    select id
      from checkout
     where merchant_id = :merchant_id and live = :live and request_digest = :request_digest
)
select coupon_is_open(:merchant_id, :live, :id, coalesce((select id from reduced), 0), :at)
       or exists (select
                    from reduced r
                    join checkout c on c.merchant_id = :merchant_id and c.id = r.id
                    join payment p
                      on p.merchant_id = c.merchant_id and p.live = c.live and p.merchant_order_id = c.merchant_order_id
                     and not p.renewal and p.checkout_id = c.id and p.state <> 'declined');

-- name: is_used_up(merchant_id, live, checkout_id, email)$
-- Whether a customer has used the coupon of a checkout as often as one may.
select coalesce(uses_by(c.merchant_id, c.live, c.coupon_id, c.id, :email) >= q.most_per_customer, false)
  from checkout c
  join coupon q on q.merchant_id = c.merchant_id and q.id = c.coupon_id
 where c.merchant_id = :merchant_id and c.live = :live and c.id = :checkout_id;

-- name: open_discounted(merchant_id, live, checkout_id, coupon_id, request_digest, package_version_id, first_amount)$
-- The same order once more, at the price that its coupon leaves; used again it is the same checkout.
insert into checkout (merchant_id, live, request_digest, merchant_order_id, amount, currency, description, success_url,
                      pingback_url, sign_version, key_id, parameters, email, first_name, last_name, country,
                      package_version_id, first_amount, line_items, payment_link_id, sale_quantity, created_at,
                      expires_at, coupon_id, undiscounted_id)
select merchant_id, live, :request_digest, merchant_order_id, amount, currency, description, success_url,
       pingback_url, sign_version, key_id, parameters, email, first_name, last_name, country,
       :package_version_id, :first_amount, line_items, payment_link_id, sale_quantity, created_at,
       expires_at, :coupon_id, id
  from checkout
 where merchant_id = :merchant_id and live = :live and id = :checkout_id
    on conflict (merchant_id, live, request_digest) do update set expires_at = excluded.expires_at
returning id;

-- name: list_version_of(merchant_id, live, checkout_id)$
-- The version of its package that a checkout without a coupon is of.
select package_version_id from checkout where merchant_id = :merchant_id and live = :live and id = :checkout_id;
