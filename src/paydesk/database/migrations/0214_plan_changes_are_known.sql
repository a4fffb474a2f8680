-- oldest code: 150
alter table subscription_change validate constraint subscription_change_type_check;
alter table subscription_change validate constraint subscription_change_names_its_plan;
