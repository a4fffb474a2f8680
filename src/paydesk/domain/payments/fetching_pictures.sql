-- name: known_pictures(merchant_id, live, url_digests, since)
-- What was fetched from some addresses not long ago.
select s.url_digest, s.digest
  from picture_source s
 where s.merchant_id = :merchant_id and s.live = :live and s.url_digest = any(:url_digests::bytea[])
   and s.fetched_at > :since;

-- name: store_picture(merchant_id, live, digest, content, url_digest, now)!
-- A picture stands under the name of its content and never changes; the address it came from leads to the newest one.
with kept as (
    insert into item_picture (merchant_id, live, digest, content, created_at)
    values (:merchant_id, :live, :digest, :content, :now)
        on conflict (merchant_id, live, digest) do nothing
)
insert into picture_source as s (merchant_id, live, url_digest, digest, fetched_at)
values (:merchant_id, :live, :url_digest, :digest, :now)
    on conflict (merchant_id, live, url_digest) do update set digest = excluded.digest, fetched_at = excluded.fetched_at;

-- name: keep_picture(merchant_id, live, digest, content, now)!
insert into item_picture (merchant_id, live, digest, content, created_at)
values (:merchant_id, :live, :digest, :content, :now)
    on conflict (merchant_id, live, digest) do nothing;

-- name: find_picture(merchant_id, live, digest)^
select content from item_picture where merchant_id = :merchant_id and live = :live and digest = :digest;
