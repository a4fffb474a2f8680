-- oldest code: 150
-- Small pictures of what is sold, drawn by us, and where they were fetched from.
create table item_picture (
    merchant_id bigint not null,
    live boolean not null,
    digest bytea not null,
    content bytea not null,
    created_at timestamptz not null,
    primary key (merchant_id, live, digest)
);
comment on table item_picture is 'WebP pictures by the SHA-256 of their content; one never changes';

create table picture_source (
    merchant_id bigint not null,
    live boolean not null,
    url_digest bytea not null,
    digest bytea not null,
    fetched_at timestamptz not null,
    primary key (merchant_id, live, url_digest)
);
comment on table picture_source is 'what was at an address when it was last fetched; fetched_at is real time';
