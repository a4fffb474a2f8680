-- name: one_at_a_time(acquirer)!
-- Who compares for an operator, and has no lease, tells after the worker who has it, or before.
select from reconciliation where acquirer = :acquirer for no key update;

-- name: told_later(subjects, began, bys)
-- Of which differences a comparison that began later has told something: that they are there, or that they are no more.
select subject, true as is_open
  from alarm
 where merchant_id = 0 and live and kind = 'not_reconciled' and subject = any(:subjects::text[])
   and settled_at is null and last_at > :began
 union all
select subject, false
  from alarm
 where merchant_id = 0 and live and kind = 'not_reconciled' and subject = any(:subjects::text[])
   and settled_at > :began and settled_by = any(:bys::text[]);
