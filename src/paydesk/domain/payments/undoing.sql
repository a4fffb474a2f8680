-- name: begin_void(merchant_id, live, attempt_id, acquirer_reference, kept, lookup_at, now)$
-- An approval turned up for an attempt that was given up: commit to undoing it before the acquirer is asked to, and to
-- letting go of what its page has kept. (What is kept of a typed card, or was there before, others may be charged by.)
with begun as (
    update payment_attempt
       set state = 'voiding', acquirer_reference = :acquirer_reference, lookup_at = :lookup_at, lookups = 0,
           leased_until = null, alerted_at = :now
     where merchant_id = :merchant_id and live = :live and id = :attempt_id and state in ('failed', 'abandoned')
 returning merchant_id, live, id, acquirer
), kept as (
    insert into kept_release (merchant_id, live, acquirer, reference, asked_at, due_at)
    select b.merchant_id, b.live, b.acquirer, :kept, clock_timestamp(), clock_timestamp()
      from begun b
      join hosted_page h on h.merchant_id = b.merchant_id and h.live = b.live and h.attempt_id = b.id
     where :kept <> ''
       and not exists (select from card c
                        where c.merchant_id = b.merchant_id and c.acquirer = b.acquirer and c.stored_reference = :kept
                          and c.let_go_at is null)
        on conflict do nothing
)
select id from begun;

-- name: record_void(merchant_id, live, attempt_id, now)$
update payment_attempt
   set state = 'voided', finished_at = :now, lookup_at = null, leased_until = null
 where merchant_id = :merchant_id and live = :live and id = :attempt_id and state = 'voiding'
returning id;
