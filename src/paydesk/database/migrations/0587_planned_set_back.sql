-- oldest code: 150
create or replace view subscription_planned as
select w.merchant_id, w.live, w.id, w.state, w.init_payment_id, w.init_merchant_order_id, w.time_zone, w.anchor,
       w.next_period, w.date_next, w.date_start, w.created_at, w.failures, w.counter, w.paid_number_counter,
       w.date_active, w.date_paid, w.date_end, w.date_expired, w.date_cancelled, w.date_stopped, w.cancelled_by,
       w.revision, w.charging_attempt_id, w.portal_token, w.terms_agreed, w.card_id, w.customer_id, w.acquirer,
       w.network_reference, w.sign_version, w.key_id, w.pingback_url, w.email,
       w.package_version_id, w.package_id, w.sku_id, w.subscriptions_count, w.package_name, w.currency, w.price,
       w.period_length, w.period_unit, w.trial_price, w.trial_length, w.trial_unit, w.payment_limit, w.skipped,
       w.portal_seed, c.type as change_type, c.due_at as change_due_at, c.since as change_since,
       c.asked_by as change_by,
       case when c.package_version_id is not null
            then (select to_jsonb(t)::text
                    from package_terms t
                   where t.merchant_id = c.merchant_id and t.live = c.live
                     and t.package_version_id = c.package_version_id)
       end as change_terms,
       m.extra_events @> array['subscription_paused'] as tells_pauses, w.list_price, w.discount_periods, w.quantity,
       w.set_back
  from subscription_whole w
  join merchant m on m.id = w.merchant_id
  left join subscription_change c
    on c.merchant_id = w.merchant_id and c.live = w.live and c.subscription_id = w.id and c.state = 'open';
