-- name: hurry_named(merchant_id, live, attempt_id, acquirer, rest, now)$
-- An attempt whose page may still be paid is due at once, or as soon as it may be looked at again.
update payment_attempt a
   set lookup_at = greatest(:now::timestamptz, h.looked_at + :rest::interval)
  from hosted_page h
 where a.merchant_id = :merchant_id and a.live = :live and a.id = :attempt_id and a.acquirer = :acquirer
   and h.merchant_id = a.merchant_id and h.live = a.live and h.attempt_id = a.id
   and (a.state in ('processing', 'challenged', 'pending') or a.state in ('failed', 'abandoned') and a.lookup_at is not null)
returning a.id;

-- name: hurry_change(merchant_id, live, change_id, acquirer, rest, now)$
-- The same for the change of a subscription's card that is made on a page.
update card_change
   set lookup_at = greatest(:now::timestamptz, page_looked_at + :rest::interval)
 where merchant_id = :merchant_id and live = :live and id = :change_id and acquirer = :acquirer
   and page_ends_at is not null and (state in ('processing', 'challenged') or state = 'abandoned' and lookup_at is not null)
returning id;

-- name: hurry_noticed(acquirer, key, merchant, rest, now)$
-- The same by the key that the acquirer knows, and the tag of its merchant: an attempt's, or a change's.
with attempt as (
    update payment_attempt a
       set lookup_at = greatest(:now::timestamptz, h.looked_at + :rest::interval)
      from merchant m
      join hosted_page h on h.merchant_id = m.id
     where m.key_tag = :merchant and a.merchant_id = m.id and a.idempotency_key = :key and a.acquirer = :acquirer
       and h.live = a.live and h.attempt_id = a.id
       and (a.state in ('processing', 'challenged', 'pending')
            or a.state in ('failed', 'abandoned') and a.lookup_at is not null)
 returning a.id
), change as (
    update card_change c
       set lookup_at = greatest(:now::timestamptz, c.page_looked_at + :rest::interval)
      from merchant m
     where m.key_tag = :merchant and c.merchant_id = m.id and c.idempotency_key = :key and c.acquirer = :acquirer
       and c.page_ends_at is not null
       and (c.state in ('processing', 'challenged') or c.state = 'abandoned' and c.lookup_at is not null)
 returning c.id
)
select id from attempt union all select id from change limit 1;

-- name: claim_look(merchant_id, live, attempt_id, rest, now)$
-- One looks at a page at a time, and not again at once.
update hosted_page
   set looked_at = :now
 where merchant_id = :merchant_id and live = :live and attempt_id = :attempt_id
   and (looked_at is null or looked_at <= :now::timestamptz - :rest::interval)
returning attempt_id;
