-- name: find(merchant_id)^
select name, email, time_zone, shipped_goods, customer_mails, test_mails, app_schemes, saves_cards, signs_quantities,
       signs_line_items, slow_methods, portal_cancels, portal_pauses, portal_plans, portal_quantities,
       dunning_hours, dunning_by_reason, dunning_end,
       charge_notice_days,
       trials_without_card,
       (select count(*) from (
           select 1 from payment where merchant_id = :merchant_id and live and ship_by is not null limit 1000) held) as held
  from merchant
 where id = :merchant_id;

-- name: knows_zone(time_zone)$
-- Whether this database knows a time zone by its name: where it does not, no subscription can be written down.
select exists (select from pg_timezone_names where name = :time_zone);

-- name: save(merchant_id, name, email, time_zone, shipped_goods, customer_mails, test_mails, app_schemes, saves_cards, signs_quantities, signs_line_items, slow_methods, portal_cancels, portal_pauses, portal_plans, portal_quantities, dunning_hours, dunning_by_reason, dunning_end, charge_notice_days, trials_without_card)!
update merchant
   set name = :name, email = :email, time_zone = :time_zone, shipped_goods = :shipped_goods,
       customer_mails = :customer_mails, test_mails = :test_mails, app_schemes = :app_schemes::text[],
       saves_cards = :saves_cards, signs_quantities = :signs_quantities,
       signs_line_items = :signs_line_items, slow_methods = :slow_methods,
       portal_cancels = :portal_cancels, portal_pauses = :portal_pauses,
       portal_plans = :portal_plans, portal_quantities = :portal_quantities,
       dunning_hours = :dunning_hours::integer[], dunning_by_reason = :dunning_by_reason,
       dunning_end = :dunning_end, charge_notice_days = :charge_notice_days::integer,
       trials_without_card = :trials_without_card
 where id = :merchant_id;
