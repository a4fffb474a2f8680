-- oldest code: 150
-- outside a transaction
create index concurrently if not exists package_version_offered on package_version (merchant_id, live, currency)
    where portal_offered;
