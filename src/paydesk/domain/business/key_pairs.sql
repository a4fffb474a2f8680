-- name: public_keys(merchant_id, most)
-- Newest first, with those that have ended; nothing of a private key.
select id, public_key, created_at, valid_until, scopes, moves_live
  from merchant_key
 where merchant_id = :merchant_id
 order by id desc
 limit :most;

-- name: unseen_key(merchant_id)$
-- The first pair of a shop that was opened in the account, while nobody has seen its private key.
select unseen_first_key(:merchant_id);

-- name: lock_key(merchant_id, id)$
-- Who sees it first is settled one after the other.
select public_key from merchant_key where merchant_id = :merchant_id and id = :id for no key update;

-- name: end_key(merchant_id, id, now)$
-- Only one that was replaced: what takes its place is valid. Of several that end it at once, one gets the row.
update merchant_key
   set valid_until = :now
 where merchant_id = :merchant_id and id = :id and valid_until > :now
returning public_key;
