-- name: list_told_unknown(account, most)
-- What waits for a merchant who is not in this cell, for the operator, the oldest first. What another cell has booked waits
-- for nothing.
select acquirer, 'failed refund' as what, told, first_at, last_at, alarmed_at, reason
  from failed_refund_waiting
 where next_at is not null and (:account::text is null or acquirer = :account)
 union all
select acquirer, 'dispute', told, first_at, last_at, alarmed_at, reason
  from dispute_waiting
 where stands <> 'over' and (:account::text is null or acquirer = :account)
 order by 4, 1, 2
 limit :most;
