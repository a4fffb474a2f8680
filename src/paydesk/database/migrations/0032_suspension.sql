-- An operator may suspend a merchant: no live checkout and no live charge is begun while it lasts.
alter table merchant
    add column suspended_at timestamptz,
    add column suspended_reason text not null default '';
comment on column merchant.suspended_reason is 'what the operator tells the merchant''s team';
create index merchant_suspended on merchant (id) where suspended_at is not null;

-- The operator's search by the beginning of a name or an address, and by the day of going live.
create index merchant_by_name on merchant (lower(name) text_pattern_ops, id);
create index merchant_by_email on merchant (lower(email) text_pattern_ops, id);
create index merchant_live on merchant (id) where went_live_at is not null;
create index merchant_key_by_prefix on merchant_key (public_key text_pattern_ops);
