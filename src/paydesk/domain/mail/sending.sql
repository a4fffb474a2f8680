-- name: claim(now, most, lease, merchant_kinds)
-- Mails that are due, each taken by one sender under a lease in database time. What a merchant itself is told is written
-- in the language of whoever logs in with that address.
with due as materialized (
    select merchant_id, id
      from mail
     where state = 'due' and due_at <= :now and (leased_until is null or leased_until < clock_timestamp())
     order by due_at
     limit :most
       for update skip locked
), taken as (
    update mail
       set leased_until = clock_timestamp() + :lease::interval, attempts = mail.attempts + 1
      from due
     where mail.merchant_id = due.merchant_id and mail.id = due.id
 returning mail.*
)
select t.merchant_id, t.live, t.id, t.kind, t.recipient, t.facts, t.attempts, t.created_at,
       coalesce(p.language, t.language) as language, coalesce(m.name, '') as merchant_name,
       coalesce(m.email, '') as merchant_email, coalesce(m.time_zone, 'UTC') as time_zone
  from taken t
  left join merchant m on m.id = t.merchant_id
  left join person p on lower(p.email) = lower(t.recipient) and t.kind = any(:merchant_kinds::text[]);

-- name: record_sent(merchant_id, id, now)!
-- The server has it: that counts whoever sent it. The token of a link is not needed any more.
update mail
   set state = 'sent', sent_at = :now, leased_until = null, last_error = '', facts = facts - 'token'
 where merchant_id = :merchant_id and id = :id and state = 'due';

-- name: record_delay(merchant_id, id, attempts, due_at, why)!
-- To be tried again, by whoever has the lease.
update mail
   set due_at = :due_at, leased_until = null, last_error = :why
 where merchant_id = :merchant_id and id = :id and state = 'due' and attempts = :attempts;

-- name: record_failure(merchant_id, id, attempts, why)!
-- Given up.
update mail
   set state = 'failed', leased_until = null, last_error = :why, facts = facts - 'token'
 where merchant_id = :merchant_id and id = :id and state = 'due' and attempts = :attempts;

-- name: forget_mails(before)!
-- What was sent or given up holds names and addresses, and is kept only for a while.
delete from mail where state <> 'due' and created_at < :before;
