-- name: open_outcomes(merchant_id)$
-- How many attempts still wait for the janitor or for a customer at their bank.
select count(*)
  from payment_attempt
 where (:merchant_id::bigint is null or merchant_id = :merchant_id)
   and lookup_at is not null and state in ('processing', 'challenged', 'pending', 'voiding');

-- name: arriving()$
-- Who comes from another cell: their sums and their name come last, and until then that cell's check is theirs.
select coalesce(array_agg(merchant_id), '{}') from merchant_fence where arrives;

-- name: make_bank_record()!
-- Where the simulated bank keeps its own record is no part of this database, so it is brought here to be compared.
create temporary table bank_record (
    key text not null,
    currency text not null,
    net numeric not null,
    held numeric not null,
    charged_back numeric not null,
    disputed_at_line bigint,
    deployment text,
    merchant_tag text
) on commit drop;

-- name: make_bank_purchase()!
-- What another deployment's mark stands with is that one's, as in a list that is reconciled; cells may share a bank. Ours is
-- what our books have of it, and all of a merchant's who is here, wherever it was taken.
create temporary table bank_purchase on commit drop as
with others as materialized (
    select b.key
      from bank_record b
     where b.deployment <> (select tag from deployment)
       and not exists (select from payment_attempt a where a.idempotency_key = b.key and a.acquirer = 'simulator')
       and not exists (select from merchant m
                        where m.key_tag = b.merchant_tag
                          and not exists (select from merchant_fence f where f.merchant_id = m.id and f.moved_at is not null))
)
select b.key, b.currency, b.net, b.held, b.charged_back, b.disputed_at_line
  from bank_record b
 where not exists (select from others o where o.key = b.key);

-- name: left_out()$
-- How many purchases are other deployments'.
select (select count(*) from bank_record) - (select count(*) from bank_purchase);
