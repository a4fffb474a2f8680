-- oldest code: 150
-- in batches of 1000: subscription (merchant_id, id)
-- The subscriptions from before whose periods are long; what began meanwhile was written down by the trigger.
update subscription s
   set is_long = true
  from batch b, package_version v
 where s.merchant_id = b.merchant_id and s.id = b.id
   and v.merchant_id = s.merchant_id and v.id = s.package_version_id and lasts_a_year(v.period_length, v.period_unit)
   and s.state in ('Trial', 'Active') and s.is_long is null;
