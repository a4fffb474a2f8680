-- name: open_outcomes(merchant_id)$
-- How many attempts still wait for the janitor or for a customer at their bank.
select count(*)
  from payment_attempt
 where (:merchant_id::bigint is null or merchant_id = :merchant_id)
   and lookup_at is not null and state in ('processing', 'challenged', 'pending', 'voiding');

-- name: arriving()$
-- Who comes from another cell: their sums and their name come last, and until then that cell's check is theirs.
select coalesce(array_agg(merchant_id), '{}') from merchant_fence where arrives;

-- name: make_bank_purchase()!
-- Where the simulated bank keeps its own record is no part of this database, so it is brought here to be compared.
create temporary table bank_purchase (
    key text not null,
    currency text not null,
    net numeric not null,
    held numeric not null,
    charged_back numeric not null,
    disputed_at_line bigint
) on commit drop;
