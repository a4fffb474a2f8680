-- After a suspension or an outage one period is charged and the calendar moves on, unless an operator wants all of them.

-- Nullable, since the processes of the release before write rows without it.
alter table subscription add column skipped integer default 0 check (skipped >= 0);
comment on column subscription.skipped is 'periods that fell due while nothing could be charged, and never were: by so many the calendar has moved on since the anchor';

alter table merchant add column charge_missed_until timestamptz;
comment on column merchant.charge_missed_until is 'an operator''s choice: periods that fell due until then are all charged, none is skipped';

create or replace view subscription_whole as
select s.merchant_id, s.live, s.id, s.state, s.init_payment_id, s.init_merchant_order_id, s.time_zone, s.anchor,
       s.next_period, s.date_next, s.date_start, s.created_at, s.failures, s.counter, s.paid_number_counter,
       s.date_active, s.date_paid, s.date_end, s.date_expired, s.date_cancelled, s.date_stopped, s.cancelled_by,
       s.revision, s.charging_attempt_id, s.portal_token, s.terms_agreed, s.card_id, s.customer_id, s.acquirer,
       s.network_reference, s.sign_version, s.key_id, s.pingback_url, u.email,
       t.package_version_id, t.package_id, t.sku_id, t.subscriptions_count, t.package_name, t.currency, t.price,
       t.period_length, t.period_unit, t.trial_price, t.trial_length, t.trial_unit, t.payment_limit,
       coalesce(s.skipped, 0) as skipped
  from subscription s
  join package_terms t
    on t.merchant_id = s.merchant_id and t.live = s.live and t.package_version_id = s.package_version_id
  join customer u on u.merchant_id = s.merchant_id and u.live = s.live and u.id = s.customer_id;
