-- name: find_old_link(merchant_id, live, token, token_hash)$
-- The subscription whose link an older version made, hidden by now or still in clear.
select id from subscription where merchant_id = :merchant_id and live = :live and portal_token_hash = :token_hash
 union all
select id from subscription where merchant_id = :merchant_id and live = :live and portal_token = :token
 limit 1;

-- name: find_holding(merchant_id, live, id)^
-- A subscription with all that its customer's page needs: whose it is, its card, and the last change of that card.
select w.*, m.name as merchant_name, b.changed_at as branded_at, coalesce(b.logo_type, '') <> '' as has_logo,
       shop_imprint(w.merchant_id) as imprint,
       m.portal_cancels, m.portal_pauses, m.portal_plans, m.portal_quantities,
       w.live and m.suspended_at is not null as suspended, side_clock(w.live, m.test_clock) as clock, d.slow,
       d.brand, d.last4, d.holder, d.exp_month, d.exp_year,
       s.balance,
       coalesce((select nullif(f.website, '')
                   from business_profile f
                  where f.merchant_id = w.merchant_id and f.status = 'accepted'),
                (select k.success_url
                   from payment i
                   join checkout k on k.merchant_id = i.merchant_id and k.live = i.live and k.id = i.checkout_id
                  where i.merchant_id = w.merchant_id and i.live = w.live and i.id = w.init_payment_id
                    and merchant_confirmed(i.merchant_id)), '') as shop_url,
       c.id as change_id, c.state as change_state, c.idempotency_key, c.acquirer as change_acquirer, c.not_after,
       c.challenge_url, c.decline_reason, c.page_reference, c.page_currency, c.page_ends_at,
       case when a.state = 'pending' then a.sure_by end as sure_by,
       exists (select
                 from subscription_change g
                where g.merchant_id = w.merchant_id and g.live = w.live and g.subscription_id = w.id
                  and g.type = 'change' and g.state = 'done') as plan_changed,
       exists (select
                 from package_version o
                where o.merchant_id = w.merchant_id and o.live = w.live and o.currency = w.currency
                  and o.portal_offered and o.id <> w.package_version_id) as has_plans
  from subscription_tried w
  join subscription s on s.merchant_id = w.merchant_id and s.live = w.live and s.id = w.id
  join merchant m on m.id = w.merchant_id
  left join branding b on b.merchant_id = m.id
  join card d on d.merchant_id = w.merchant_id and d.live = w.live and d.id = w.card_id
  left join payment_attempt a on a.merchant_id = w.merchant_id and a.live = w.live and a.id = w.charging_attempt_id
  left join lateral (
      select *
        from card_change c
       where c.merchant_id = w.merchant_id and c.live = w.live and c.subscription_id = w.id
       order by c.id desc
       limit 1
  ) c on true
 where w.merchant_id = :merchant_id and w.live = :live and w.id = :id;

-- name: find_receipt(merchant_id, live, subscription_id, id, states)^
-- One payment of a subscription that was made, with what paid it.
select p.id, p.merchant_order_id, coalesce(p.paid_at, p.created_at) as at, p.amount, p.refunded, p.currency, d.brand, d.last4
  from payment p
  join card d on d.merchant_id = p.merchant_id and d.live = p.live and d.id = p.card_id
 where p.merchant_id = :merchant_id and p.live = :live and p.id = :id and p.state = any (:states)
   and (p.subscription_id = :subscription_id
        or exists (select
                     from subscription_difference e
                    where e.merchant_id = p.merchant_id and e.live = p.live and e.attempt_id = p.attempt_id
                      and e.subscription_id = :subscription_id));

-- name: past_payments(merchant_id, live, subscription_id, before, most)
-- A subscription's payments, newest first, with what was charged for changes of its plan; :before is the id to go on below.
(select p.id, p.period_number as period, p.state, p.amount, p.currency, coalesce(p.paid_at, p.created_at) as at
   from payment p
  where p.merchant_id = :merchant_id and p.live = :live and p.subscription_id = :subscription_id and p.id < :before)
 union
(select p.id, d.period_number, p.state, p.amount, p.currency, coalesce(p.paid_at, p.created_at)
   from subscription_difference d
   join payment_attempt a on a.merchant_id = d.merchant_id and a.live = d.live and a.id = d.attempt_id
   join payment p on p.merchant_id = a.merchant_id and p.live = a.live and p.id = a.payment_id and p.attempt_id = a.id
  where d.merchant_id = :merchant_id and d.live = :live and d.subscription_id = :subscription_id and p.id < :before)
 order by id desc
 limit :most;
