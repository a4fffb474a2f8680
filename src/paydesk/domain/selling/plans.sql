-- name: find_versions(merchant_id, live, ids)
-- Versions that links may sell: at their list price, and of one.
select *
  from package_terms
 where merchant_id = :merchant_id and live = :live and package_version_id = any(:ids::bigint[]) and list_price is null
   and quantity = 1;
