-- Fields of checkout forms and deliveries that mean nothing here: names alone, for what they hold may be a person's.
create table ignored_field (
    merchant_id bigint not null references merchant (id),
    live boolean not null,
    sent_with text not null check (sent_with in ('form', 'delivery')),
    name text not null,
    first_at timestamptz not null,
    last_at timestamptz not null,
    primary key (merchant_id, live, sent_with, name)
);
comment on table ignored_field is 'unknown fields that a shop sends, one row per name, at most 100 of each kind';
