-- oldest code: 150
-- outside a transaction
create index concurrently if not exists subscription_change_of_move
    on subscription_change (merchant_id, live, move_id, state, subscription_id) where move_id is not null;
