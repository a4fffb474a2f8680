-- name: count_private_keys()
select vault_key_id as key_id, count(*) as values from merchant_key group by vault_key_id;

-- name: read_private_keys(after_merchant, after_id, key_id, most)
-- The next values that are not under the newest key, in the order of the table's own key.
select merchant_id, id, private_key_sealed as was, vault_key_id as key_id
  from merchant_key
 where vault_key_id <> :key_id and (merchant_id, id) > (:after_merchant::bigint, :after_id::bigint)
 order by merchant_id, id
 limit :most;

-- name: write_private_keys(merchant_ids, ids, were, blobs, key_id)$
-- Only what still is as it was read: whoever wrote meanwhile used the newest key.
with moved as (
    update merchant_key k
       set private_key_sealed = o.blob, vault_key_id = :key_id
      from unnest(:merchant_ids::bigint[], :ids::bigint[], :were::bytea[], :blobs::bytea[])
        as o (merchant_id, id, was, blob)
     where k.merchant_id = o.merchant_id and k.id = o.id and k.private_key_sealed = o.was
 returning 1
)
select count(*) from moved;

-- name: count_card_numbers()
select vault_key_id as key_id, count(*) as values from card where number_sealed is not null group by vault_key_id;

-- name: read_card_numbers(after_merchant, after_id, key_id, most)
-- By the index of the cards that have their number.
select merchant_id, id, number_sealed as was, vault_key_id as key_id
  from card
 where number_sealed is not null and vault_key_id <> :key_id
   and (merchant_id, id) > (:after_merchant::bigint, :after_id::bigint)
 order by merchant_id, id
 limit :most;

-- name: write_card_numbers(merchant_ids, ids, were, blobs, key_id)$
with moved as (
    update card c
       set number_sealed = o.blob, vault_key_id = :key_id
      from unnest(:merchant_ids::bigint[], :ids::bigint[], :were::bytea[], :blobs::bytea[])
        as o (merchant_id, id, was, blob)
     where c.merchant_id = o.merchant_id and c.id = o.id and c.number_sealed = o.was
 returning 1
)
select count(*) from moved;

-- name: count_acquirer_keys()
select vault_key_id as key_id, count(*) as values
  from acquirer_account
 where key_sealed is not null
 group by vault_key_id;

-- name: read_acquirer_keys(after_merchant, after_id, key_id, most)
-- Accounts are the deployment's, whomever they serve: their merchant is 0.
select 0::bigint as merchant_id, id, key_sealed as was, vault_key_id as key_id
  from acquirer_account
 where key_sealed is not null and vault_key_id <> :key_id
   and (0, id) > (:after_merchant::bigint, :after_id::bigint)
 order by id
 limit :most;

-- name: write_acquirer_keys(merchant_ids, ids, were, blobs, key_id)$
with moved as (
    update acquirer_account c
       set key_sealed = o.blob, vault_key_id = :key_id
      from unnest(:merchant_ids::bigint[], :ids::bigint[], :were::bytea[], :blobs::bytea[])
        as o (merchant_id, id, was, blob)
     where c.id = o.id and c.key_sealed = o.was
 returning 1
)
select count(*) from moved;

-- name: count_webhook_secrets()
select webhook_key_id as key_id, count(*) as values
  from acquirer_account
 where webhook_sealed is not null
 group by webhook_key_id;

-- name: read_webhook_secrets(after_merchant, after_id, key_id, most)
-- As the keys of the same accounts.
select 0::bigint as merchant_id, id, webhook_sealed as was, webhook_key_id as key_id
  from acquirer_account
 where webhook_sealed is not null and webhook_key_id <> :key_id
   and (0, id) > (:after_merchant::bigint, :after_id::bigint)
 order by id
 limit :most;

-- name: write_webhook_secrets(merchant_ids, ids, were, blobs, key_id)$
with moved as (
    update acquirer_account c
       set webhook_sealed = o.blob, webhook_key_id = :key_id
      from unnest(:merchant_ids::bigint[], :ids::bigint[], :were::bytea[], :blobs::bytea[])
        as o (merchant_id, id, was, blob)
     where c.id = o.id and c.webhook_sealed = o.was
 returning 1
)
select count(*) from moved;

-- name: count_second_factors()
select vault_key_id as key_id, count(*) as values from person where totp_sealed is not null group by vault_key_id;

-- name: read_second_factors(after_merchant, after_id, key_id, most)
-- People belong to no merchant: it is 0.
select 0::bigint as merchant_id, id, totp_sealed as was, vault_key_id as key_id
  from person
 where totp_sealed is not null and vault_key_id <> :key_id
   and (0, id) > (:after_merchant::bigint, :after_id::bigint)
 order by id
 limit :most;

-- name: write_second_factors(merchant_ids, ids, were, blobs, key_id)$
with moved as (
    update person p
       set totp_sealed = o.blob, vault_key_id = :key_id
      from unnest(:merchant_ids::bigint[], :ids::bigint[], :were::bytea[], :blobs::bytea[])
        as o (merchant_id, id, was, blob)
     where o.merchant_id = 0 and p.id = o.id and p.totp_sealed = o.was
 returning 1
)
select count(*) from moved;

-- name: count_bank_accounts()
select vault_key_id as key_id, count(*) as values
  from business_profile
 where iban_sealed is not null
 group by vault_key_id;

-- name: read_bank_accounts(after_merchant, after_id, key_id, most)
-- A merchant has one, bound to its own id.
select merchant_id, merchant_id as id, iban_sealed as was, vault_key_id as key_id
  from business_profile
 where iban_sealed is not null and vault_key_id <> :key_id
   and (merchant_id, merchant_id) > (:after_merchant::bigint, :after_id::bigint)
 order by merchant_id
 limit :most;

-- name: write_bank_accounts(merchant_ids, ids, were, blobs, key_id)$
with moved as (
    update business_profile b
       set iban_sealed = o.blob, vault_key_id = :key_id
      from unnest(:merchant_ids::bigint[], :ids::bigint[], :were::bytea[], :blobs::bytea[])
        as o (merchant_id, id, was, blob)
     where b.merchant_id = o.merchant_id and b.merchant_id = o.id and b.iban_sealed = o.was
 returning 1
)
select count(*) from moved;

-- name: count_proposed_accounts()
select vault_key_id as key_id, count(*) as values
  from profile_change
 where status = 'waiting' and iban_sealed is not null
 group by vault_key_id;

-- name: read_proposed_accounts(after_merchant, after_id, key_id, most)
-- A merchant has one, bound to its own id, which is what stands in the accepted one's place later.
select merchant_id, merchant_id as id, iban_sealed as was, vault_key_id as key_id
  from profile_change
 where status = 'waiting' and iban_sealed is not null and vault_key_id <> :key_id
   and (merchant_id, merchant_id) > (:after_merchant::bigint, :after_id::bigint)
 order by merchant_id
 limit :most;

-- name: write_proposed_accounts(merchant_ids, ids, were, blobs, key_id)$
with moved as (
    update profile_change c
       set iban_sealed = o.blob, vault_key_id = :key_id
      from unnest(:merchant_ids::bigint[], :ids::bigint[], :were::bytea[], :blobs::bytea[])
        as o (merchant_id, id, was, blob)
     where c.merchant_id = o.merchant_id and c.merchant_id = o.id and c.status = 'waiting' and c.iban_sealed = o.was
 returning 1
)
select count(*) from moved;

-- name: count_mail_facts()
select f.value ->> 'vault_key_id' as key_id, count(*) as values
  from mail m
 cross join lateral jsonb_each(m.facts) f
 where jsonb_typeof(f.value) = 'object' and f.value ? 'sealed' and f.value ? 'vault_key_id'
 group by 1;

-- name: find_mail_facts(after_merchant, after_id, key_id, most)
-- Mails with a fact under another key: few wait at any time, and none is kept for long.
select m.merchant_id, m.id, m.facts as was
  from mail m
 where (m.merchant_id, m.id) > (:after_merchant::bigint, :after_id::bigint)
   and exists (select
                 from jsonb_each(m.facts) f
                where jsonb_typeof(f.value) = 'object' and f.value ? 'sealed' and f.value ->> 'vault_key_id' <> :key_id)
 order by m.merchant_id, m.id
 limit :most;

-- name: write_mail_facts(merchant_ids, ids, were, facts)$
with moved as (
    update mail m
       set facts = o.facts
      from unnest(:merchant_ids::bigint[], :ids::bigint[], :were::jsonb[], :facts::jsonb[])
        as o (merchant_id, id, was, facts)
     where m.merchant_id = o.merchant_id and m.id = o.id and m.facts = o.was
 returning 1
)
select count(*) from moved;

-- name: brought_private_keys(merchant_id, after_id, most)
-- What this very transaction has brought of a merchant's: whatever its key is called, it is another cell's.
select merchant_id, id, private_key_sealed as was, vault_key_id as key_id
  from merchant_key
 where merchant_id = :merchant_id and id > :after_id::bigint and xmin = pg_current_xact_id_if_assigned()::xid
 order by id
 limit :most;

-- name: brought_card_numbers(merchant_id, after_id, most)
-- By the index of the cards that have their number.
select merchant_id, id, number_sealed as was, vault_key_id as key_id
  from card
 where number_sealed is not null and merchant_id = :merchant_id and id > :after_id::bigint
   and xmin = pg_current_xact_id_if_assigned()::xid
 order by id
 limit :most;

-- name: brought_bank_accounts(merchant_id, after_id, most)
select merchant_id, merchant_id as id, iban_sealed as was, vault_key_id as key_id
  from business_profile
 where iban_sealed is not null and merchant_id = :merchant_id and merchant_id > :after_id::bigint
   and xmin = pg_current_xact_id_if_assigned()::xid
 limit :most;

-- name: brought_proposed_accounts(merchant_id, after_id, most)
select merchant_id, merchant_id as id, iban_sealed as was, vault_key_id as key_id
  from profile_change
 where status = 'waiting' and iban_sealed is not null and merchant_id = :merchant_id
   and merchant_id > :after_id::bigint and xmin = pg_current_xact_id_if_assigned()::xid
 limit :most;

-- name: find_brought_facts(merchant_id, after_id, most)
select m.merchant_id, m.id, m.facts as was
  from mail m
 where m.merchant_id = :merchant_id and m.id > :after_id::bigint and m.xmin = pg_current_xact_id_if_assigned()::xid
   and exists (select
                 from jsonb_each(m.facts) f
                where jsonb_typeof(f.value) = 'object' and f.value ? 'sealed')
 order by m.id
 limit :most;

-- name: forget_fingerprints()!
-- What processes of an older version wrote after the migration.
update card set fingerprint = ''
 where fingerprint <> '' and coalesce(merchant_id <> all (array(select merchant_id from merchant_fence)), true);

-- name: merchants_with_numbers()
-- By the index of the cards that have their number. Nothing is written of who goes to another cell or comes from there.
select distinct merchant_id
  from card
 where number_sealed is not null
   and coalesce(merchant_id <> all (array(select merchant_id from merchant_fence)), true)
 order by merchant_id;

-- name: forget_spare_numbers(merchant_id, keepers, now)$
-- Erases numbers of one merchant's cards that nothing needs, or that an acquirer keeps itself.
with spare as (
    select merchant_id, id from card_number_spare where merchant_id = :merchant_id
     union
    select c.merchant_id, c.id
      from subscription s
      join card c on c.merchant_id = s.merchant_id and c.live = s.live and c.id = s.card_id
     where s.merchant_id = :merchant_id and s.acquirer = any(:keepers::text[]) and c.number_sealed is not null
), forgotten as (
    update card c
       set number_sealed = null, erased_at = :now
      from spare
     where c.merchant_id = spare.merchant_id and c.id = spare.id and c.number_sealed is not null
 returning 1
)
select count(*) from forgotten;
