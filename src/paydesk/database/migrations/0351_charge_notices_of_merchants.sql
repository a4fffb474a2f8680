-- oldest code: 150
-- outside a transaction
create index concurrently if not exists merchant_announcing on merchant (id) where charge_notice_days is not null;
