-- name: find_checkout(merchant_id, live, checkout_id)^
-- A checkout and its shop, as a page needs them. Whether nothing else has to be known: it sells one thing, once, at its
-- price, and nobody has tried to pay its order yet, as with most that are looked at. (Each column is carried through each
-- join of its statement, so what few checkouts have is not asked of all. Who stands behind a shop, and its imprint, are as
-- merchant_confirmed and shop_imprint say, which would be called each time.)
select c.merchant_id, c.live, c.id, encode(c.request_digest, 'hex') as seed, c.merchant_order_id,
       taken(coalesce(c.first_amount, c.amount), c.currency, c.live) as amount, c.currency, c.description, c.success_url, c.line_items,
       c.email, c.first_name, c.last_name, c.country, c.created_at, c.expires_at, m.name as merchant_name,
       m.app_schemes, (select count(*) = 0 or bool_or(o.email_confirmed_at is not null)
                         from membership s
                         join person o on o.id = s.person_id
                        where s.merchant_id = c.merchant_id and s.role = 'owner') as merchant_confirmed,
       case when jsonb_typeof(c.parameters -> 'city') = 'string' then c.parameters ->> 'city' end as city,
       case when jsonb_typeof(c.parameters -> 'zip') = 'string' then c.parameters ->> 'zip' end as zip,
       b.changed_at as branded_at, coalesce(b.logo_type, '') <> '' as has_logo,
       (select array[i.legal_name, i.support_email, i.support_phone, i.terms_url, i.privacy_url]
          from business_profile i
         where i.merchant_id = c.merchant_id and i.status = 'accepted') as imprint,
       side_clock(c.live, m.test_clock) as clock, c.live and m.suspended_at is not null as suspended,
       m.shipped_goods, m.saves_cards, m.slow_methods, m.email as merchant_email,
       case when jsonb_typeof(c.parameters -> 'later_charges') = 'string' then c.parameters ->> 'later_charges' end
           as charge_for,
       case when jsonb_typeof(c.parameters -> 'later_charges_limit') = 'string'
            then c.parameters ->> 'later_charges_limit' end as charge_limit,
       c.package_version_id is null and c.payment_link_id is null and c.coupon_id is null
           and c.undiscounted_id is null
           and not exists (select from payment p
                            where p.merchant_id = c.merchant_id and p.live = c.live
                              and p.merchant_order_id = c.merchant_order_id and not p.renewal) as is_plain
  from checkout c
  join merchant m on m.id = c.merchant_id
  left join branding b on b.merchant_id = c.merchant_id
 where c.merchant_id = :merchant_id and c.live = :live and c.id = :checkout_id;

-- name: find_behind_checkout(merchant_id, live, checkout_id)^
-- What else is to be known of a checkout: its order's payment, what it sells, its coupon. The payment may have been made
-- through another checkout, or (0) without any: by a saved card that the shop charged.
select c.merchant_id, c.live, c.currency,
       coalesce((select sales_of(l.merchant_id, l.live, l.id, c.id) + c.sale_quantity > l.most_sales
                   from payment_link l
                  where l.merchant_id = c.merchant_id and l.live = c.live and l.id = c.payment_link_id), false) as sold_out,
       p.id as payment_id, p.state as payment_state,
       coalesce(p.checkout_id, (select 0::bigint
                                  from instrument_charge i
                                 where i.merchant_id = a.merchant_id and i.live = a.live and i.attempt_id = a.id))
           as paying_checkout_id,
       a.id as attempt_id, a.idempotency_key, a.acquirer, a.not_after, a.decline_reason, a.challenge_url, a.client_address,
       a.amount as attempt_amount, a.currency as attempt_currency, a.acquirer_reference, h.expires_at as page_ends_at,
       h.looked_at as page_looked_at,
       coalesce(h.slow, false) as slow, h.sure_by,
       exists (select from payment_attempt o
                 join hosted_page g on g.merchant_id = o.merchant_id and g.attempt_id = o.id
                where o.merchant_id = p.merchant_id and o.live = p.live and o.payment_id = p.id
                  and o.state in ('voiding', 'voided')) as given_back,
       u.email as entered_email, u.country as entered_country, d.holder as entered_holder,
       d.exp_month as entered_month, d.exp_year as entered_year,
       t.package_version_id, t.package_id, t.sku_id, t.subscriptions_count, t.package_name, t.price, t.period_length,
       t.period_unit, t.trial_price, t.trial_length, t.trial_unit, t.payment_limit,
       t.list_price, t.discount_periods, t.quantity, q.code as coupon_code, o.id as undiscounted_id,
       encode(o.request_digest, 'hex') as undiscounted_seed, m.types_coupons
           and coalesce((select l.coupons
                           from payment_link l
                          where l.merchant_id = c.merchant_id and l.live = c.live and l.id = c.payment_link_id), true)
           as types_coupons,
       not (m.trials_without_card and coalesce(t.trial_length, 0) > 0 and t.trial_price = 0) as needs_card,
       c.coupon_id is not null
           and not coupon_is_open(c.merchant_id, c.live, c.coupon_id, c.id,
                                  clock_timestamp() + side_clock(c.live, m.test_clock)) as coupon_over
  from checkout c
  join merchant m on m.id = c.merchant_id
  left join payment p
    on p.merchant_id = c.merchant_id and p.live = c.live and p.merchant_order_id = c.merchant_order_id
   and not p.renewal
  left join package_terms t
    on t.merchant_id = c.merchant_id and t.live = c.live and t.package_version_id = c.package_version_id
  left join payment_attempt a on a.merchant_id = p.merchant_id and a.live = p.live and a.id = p.attempt_id
  left join hosted_page h on h.merchant_id = a.merchant_id and h.live = a.live and h.attempt_id = a.id
  left join customer u on u.merchant_id = p.merchant_id and u.live = p.live and u.id = p.customer_id
  left join card d on d.merchant_id = p.merchant_id and d.live = p.live and d.id = p.card_id
  left join coupon q on q.merchant_id = c.merchant_id and q.id = c.coupon_id
  left join checkout o on o.merchant_id = c.merchant_id and o.id = c.undiscounted_id
 where c.merchant_id = :merchant_id and c.live = :live and c.id = :checkout_id;
