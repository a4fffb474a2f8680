-- oldest code: 150
create or replace view subscription_whole as
select s.merchant_id, s.live, s.id, s.state, s.init_payment_id, s.init_merchant_order_id, s.time_zone, s.anchor,
       s.next_period, s.date_next, s.date_start, s.created_at, s.failures, s.counter, s.paid_number_counter,
       s.date_active, s.date_paid, s.date_end, s.date_expired, s.date_cancelled, s.date_stopped, s.cancelled_by,
       s.revision, s.charging_attempt_id, s.portal_token, s.terms_agreed, s.card_id, s.customer_id, s.acquirer,
       s.network_reference, s.sign_version, s.key_id, s.pingback_url, u.email,
       t.package_version_id, t.package_id, t.sku_id, t.subscriptions_count, t.package_name, t.currency, t.price,
       t.period_length, t.period_unit, t.trial_price, t.trial_length, t.trial_unit, t.payment_limit,
       coalesce(s.skipped, 0) as skipped, s.portal_seed, t.list_price, t.discount_periods, t.quantity,
       s.set_back
  from subscription s
  join package_terms t
    on t.merchant_id = s.merchant_id and t.live = s.live and t.package_version_id = s.package_version_id
  join customer u on u.merchant_id = s.merchant_id and u.live = s.live and u.id = s.customer_id;
