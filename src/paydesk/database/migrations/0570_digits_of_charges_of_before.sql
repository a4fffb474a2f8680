-- oldest code: 150
-- in batches of 2000: subscription (merchant_id, id)
-- The subscriptions with a balance in currencies of which acquirers take fewer decimals than there are.
update subscription s
   set charge_digits = case v.currency when 'MGA' then 0 else 2 end
  from batch b, package_version v
 where s.merchant_id = b.merchant_id and s.id = b.id
   and v.merchant_id = s.merchant_id and v.id = s.package_version_id
   and (s.charge_digits = 3 or s.charge_digits = 2 and v.currency = 'MGA');
