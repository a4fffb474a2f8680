-- oldest code: 150
-- in batches of 500: subscription (merchant_id, id)
-- The movements of subscriptions from before, as far as what is stored tells them; of what moved meanwhile the trigger
-- has told the past.
insert into mrr_movement (merchant_id, live, subscription_id, number, kind, currency, amount, at, day, began)
select s.merchant_id, s.live, s.id, p.number, p.kind, v.currency, p.amount, p.at,
       (p.at at time zone s.time_zone)::date,
       date_trunc('month', coalesce(min(p.at) filter (where p.kind in ('new', 'converted'))
                                        over (partition by s.merchant_id, s.id), p.at)
                           at time zone s.time_zone)::date
  from batch b
  join subscription s on s.merchant_id = b.merchant_id and s.id = b.id
  join package_version v on v.merchant_id = s.merchant_id and v.id = s.package_version_id
 cross join lateral mrr_past(s.merchant_id, s.id) p
 where not exists (select from mrr_movement m where m.merchant_id = s.merchant_id and m.subscription_id = s.id);
