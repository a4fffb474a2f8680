-- Deliveries: what merchants say of the shipping of an order.

create sequence delivery_id_seq;
create table delivery (
    merchant_id bigint not null,
    live boolean not null,
    id bigint not null default nextval('delivery_id_seq'),
    payment_id bigint not null,
    status text not null check (status in ('order_placed', 'order_shipped', 'delivered')),
    type text not null check (type in ('physical', 'digital')),
    carrier text not null default '',
    tracking_id text not null default '',
    tracking_url text not null default '',
    refundable boolean,
    notify_user boolean,
    product_description text not null default '',
    details text not null default '',
    reason text not null default '',
    estimated_at timestamptz,
    attachments jsonb not null default '[]',
    shipping_address jsonb,
    digest bytea not null,
    created_at timestamptz not null,
    mailed boolean not null default false,
    primary key (merchant_id, id),
    foreign key (merchant_id, payment_id) references payment (merchant_id, id)
);
comment on column delivery.shipping_address is 'personal data; null once erased';
-- The same confirmation twice is one delivery.
create unique index delivery_by_digest on delivery (merchant_id, live, payment_id, digest);
-- Serves the list of what was shipped, newest first.
create index delivery_by_time on delivery (merchant_id, live, id);
create index delivery_to_tell on delivery (merchant_id, id) where status = 'order_shipped' and not mailed;
