-- Links to checkouts and portals rest nowhere: they are made from the row and its seed under the deployment's secret key.
-- Those of older versions, which stood in their rows in clear, are found by a keyed hash once a worker, or
-- `paydesk vault sweep`, has put it in their place. A checkout's seed is its request's digest.
alter table checkout alter column token drop not null, add column token_hash bytea;
comment on column checkout.token is 'the link of an older version in clear, until it is hidden';
comment on column checkout.token_hash is 'keyed HMAC of the link that an older version made; null for what has its link from its seed';

alter table subscription
    alter column portal_token drop not null,
    add column portal_seed text,
    add column portal_token_hash bytea;
comment on column subscription.portal_token is 'the link of an older version in clear, until it is hidden';
comment on column subscription.portal_seed is 'random; with the deployment''s secret key it makes the portal''s link';
comment on column subscription.portal_token_hash is 'keyed HMAC of the link that an older version made, which goes on working';

create or replace view subscription_whole as
select s.merchant_id, s.live, s.id, s.state, s.init_payment_id, s.init_merchant_order_id, s.time_zone, s.anchor,
       s.next_period, s.date_next, s.date_start, s.created_at, s.failures, s.counter, s.paid_number_counter,
       s.date_active, s.date_paid, s.date_end, s.date_expired, s.date_cancelled, s.date_stopped, s.cancelled_by,
       s.revision, s.charging_attempt_id, s.portal_token, s.terms_agreed, s.card_id, s.customer_id, s.acquirer,
       s.network_reference, s.sign_version, s.key_id, s.pingback_url, u.email,
       t.package_version_id, t.package_id, t.sku_id, t.subscriptions_count, t.package_name, t.currency, t.price,
       t.period_length, t.period_unit, t.trial_price, t.trial_length, t.trial_unit, t.payment_limit,
       coalesce(s.skipped, 0) as skipped, s.portal_seed
  from subscription s
  join package_terms t
    on t.merchant_id = s.merchant_id and t.live = s.live and t.package_version_id = s.package_version_id
  join customer u on u.merchant_id = s.merchant_id and u.live = s.live and u.id = s.customer_id;
