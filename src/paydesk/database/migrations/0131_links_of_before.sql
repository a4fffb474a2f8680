-- Serve the links that older versions made, in clear or by their hash; rows of now have none and stand in neither.
-- outside a transaction
create unique index concurrently if not exists checkout_by_old_token on checkout (merchant_id, token)
    where token is not null;
create unique index concurrently if not exists checkout_by_token_hash on checkout (merchant_id, token_hash)
    where token_hash is not null;
create unique index concurrently if not exists subscription_by_old_token on subscription (merchant_id, portal_token)
    where portal_token is not null;
create unique index concurrently if not exists subscription_by_token_hash
    on subscription (merchant_id, portal_token_hash) where portal_token_hash is not null;
drop index concurrently if exists checkout_by_token;
drop index concurrently if exists subscription_by_token;
