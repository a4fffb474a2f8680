-- name: list_waiting(most)
-- All disputes that wait, for the operator, the oldest first; not what another cell has booked.
select acquirer, told, reason, first_at, last_at, next_at, tries
  from dispute_waiting
 where stands is distinct from 'over'
 order by first_at, acquirer, acquirer_reference
 limit :most;
