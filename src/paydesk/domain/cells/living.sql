-- name: live(merchant_id, alone)$
-- The lock of a merchant's id, until the transaction's end; nobody waits for it. See `half_way` in fencing.sql.
select case when :alone::boolean then pg_try_advisory_xact_lock(:merchant_id::bigint)
            else pg_try_advisory_xact_lock_shared(:merchant_id::bigint) end;
