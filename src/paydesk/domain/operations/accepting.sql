-- name: accept(id, by, why, now)^
-- An operator takes a difference as it is. It stays open and its purchase is still not charged beside, but it waits for
-- nobody. Only what is open and not accepted yet gives a row back.
update alarm
   set accepted_at = :now, accepted_by = :by, accepted_why = :why, accepted_fact = coalesce(details ->> 'fact', reason)
 where id = :id and merchant_id = 0 and live and kind = 'not_reconciled' and settled_at is null and accepted_at is null
returning subject, accepted_fact as fact;

-- name: take_back(id)^
-- It waits for a person again.
update alarm
   set accepted_at = null
 where id = :id and kind = 'not_reconciled' and settled_at is null and accepted_at is not null
returning subject, accepted_fact as fact;

-- name: accepted(subjects)
-- Which of these were accepted, and as what.
select subject, accepted_fact as fact
  from alarm
 where merchant_id = 0 and live and kind = 'not_reconciled' and settled_at is null and accepted_at is not null
   and subject = any(:subjects::text[]);
