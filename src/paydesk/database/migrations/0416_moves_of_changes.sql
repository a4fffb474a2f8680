-- oldest code: 150
alter table subscription_change add column move_id bigint;
comment on column subscription_change.move_id is 'the move of a package''s subscriptions that planned it; null: it was asked for';
