-- name: are_left()$
-- Nothing is written of who goes to another cell or comes from there: theirs are hidden once they have arrived.
select exists (select from checkout
                where token is not null and coalesce(merchant_id <> all (array(select merchant_id from merchant_fence)), true))
    or exists (select from subscription
                where portal_token is not null
                  and coalesce(merchant_id <> all (array(select merchant_id from merchant_fence)), true));

-- name: read_checkouts(after_merchant, after_token, most)
-- By the index of the links that stand in clear.
select merchant_id, id, token
  from checkout
 where token is not null and (merchant_id, token) > (:after_merchant::bigint, :after_token::text)
   and coalesce(merchant_id <> all (array(select merchant_id from merchant_fence)), true)
 order by merchant_id, token
 limit :most;

-- name: hide_checkouts(merchant_ids, ids, hashes)$
with hidden as (
    update checkout c
       set token_hash = o.hash, token = null
      from unnest(:merchant_ids::bigint[], :ids::bigint[], :hashes::bytea[]) as o (merchant_id, id, hash)
     where c.merchant_id = o.merchant_id and c.id = o.id and c.token is not null
 returning 1
)
select count(*) from hidden;

-- name: read_portals(after_merchant, after_token, most)
select merchant_id, id, portal_token as token
  from subscription
 where portal_token is not null and (merchant_id, portal_token) > (:after_merchant::bigint, :after_token::text)
   and coalesce(merchant_id <> all (array(select merchant_id from merchant_fence)), true)
 order by merchant_id, portal_token
 limit :most;

-- name: seed_portals(merchant_ids, ids, hashes)!
-- From now on what is told is the link that the seed makes; the older one is found by its hash.
update subscription s
   set portal_token_hash = o.hash, portal_seed = coalesce(s.portal_seed, replace(gen_random_uuid()::text, '-', ''))
  from unnest(:merchant_ids::bigint[], :ids::bigint[], :hashes::bytea[]) as o (merchant_id, id, hash)
 where s.merchant_id = o.merchant_id and s.id = o.id and s.portal_token is not null;

-- name: hide_in_mails(after_merchant, after_id, most)^
-- Mails of the last weeks name the subscription instead of its link, which is still beside it.
with looked as materialized (
    select merchant_id, id, facts ->> 'portal_token' as token
      from mail
     where (merchant_id, id) > (:after_merchant::bigint, :after_id::bigint)
     order by merchant_id, id
     limit :most
), hidden as (
    update mail m
       set facts = m.facts - 'portal_token' || jsonb_build_object(
               'portal', jsonb_build_object('id', s.id, 'seed', s.portal_seed))
      from looked
      join subscription s on s.merchant_id = looked.merchant_id and s.portal_token = looked.token
     where m.merchant_id = looked.merchant_id and m.id = looked.id and looked.token is not null
       and s.portal_seed is not null
       and coalesce(m.merchant_id <> all (array(select merchant_id from merchant_fence)), true)
 returning 1
)
select count(*) as seen,
       (select merchant_id from looked order by merchant_id desc, id desc limit 1) as merchant_id,
       (select id from looked order by merchant_id desc, id desc limit 1) as id
  from looked;

-- name: hide_portals(merchant_ids, ids)$
with hidden as (
    update subscription s
       set portal_token = null
      from unnest(:merchant_ids::bigint[], :ids::bigint[]) as o (merchant_id, id)
     where s.merchant_id = o.merchant_id and s.id = o.id and s.portal_token_hash is not null
       and s.portal_token is not null
 returning 1
)
select count(*) from hidden;
