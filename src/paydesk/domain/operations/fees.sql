-- name: amounts(merchant_id, currencies)
-- What a merchant pays in each currency that has amounts of its own, and in these.
select c.currency, f.fixed, f.chargeback_fee, a.currency is not null as own
  from (select currency from fee_amount where merchant_id = :merchant_id
         union
        select unnest(:currencies::text[])) c
 cross join lateral fees_in(:merchant_id, c.currency) f
  left join fee_amount a on a.merchant_id = :merchant_id and a.currency = c.currency
 order by own desc, c.currency;

-- name: lock_plan(merchant_id, currency)^
-- What a merchant pays in a currency; nobody else changes it until the transaction is over.
select n.fixed, n.chargeback_fee
  from fee_plan f
 cross join lateral fees_in(f.merchant_id, :currency) n
 where f.merchant_id = :merchant_id
   for update of f;

-- name: set_amounts(merchant_id, currency, fixed, chargeback_fee)!
-- Payments carry what they were split into: only new ones change.
insert into fee_amount as a (merchant_id, currency, fixed, chargeback_fee)
values (:merchant_id, :currency, :fixed, :chargeback_fee)
    on conflict (merchant_id, currency) do update
       set fixed = excluded.fixed, chargeback_fee = excluded.chargeback_fee;

-- name: forget_amounts(merchant_id, currency)$
delete from fee_amount where merchant_id = :merchant_id and currency = :currency
returning currency;
