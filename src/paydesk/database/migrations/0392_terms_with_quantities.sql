-- oldest code: 150
create or replace view package_terms as
select v.merchant_id, v.live, v.id as package_version_id, v.package_id, k.sku_id, k.subscriptions_count,
       coalesce(v.list_name, v.name) as package_name, v.currency, v.price, v.period_length, v.period_unit, v.trial_price,
       v.trial_length, v.trial_unit, v.payment_limit,
       case when v.list_version_id is not null
            then (select l.price
                    from package_version l
                   where l.merchant_id = v.merchant_id and l.id = v.list_version_id)
       end as list_price, v.discount_periods, v.quantity
  from package_version v
  join subscription_package k on k.merchant_id = v.merchant_id and k.live = v.live and k.id = v.package_id;
