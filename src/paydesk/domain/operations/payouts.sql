-- name: payable(live, merchant_id, after_merchant_id, after_currency, most, now)
-- Who has money available, by merchant and currency, in their order; of one merchant alone if asked. What keeps live money
-- where it is comes with it.
select m.id as merchant_id, m.name as merchant_name, b.currency, b.available,
       :live and m.suspended_at is not null as suspended, :live and coalesce(p.status <> 'accepted', false) as unaccepted,
       case when :live and p.payouts_from > :now then p.payouts_from end as payouts_from
  from merchant m
  left join business_profile p on p.merchant_id = m.id
 cross join lateral (
     select currency, -sum(amount) as available
       from balance_parts(m.id, :live)
      where account = 'available'
      group by currency
     having sum(amount) < 0
 ) b
 where m.id >= coalesce(:merchant_id::bigint, :after_merchant_id) and (:merchant_id::bigint is null or m.id = :merchant_id)
   and (m.id, b.currency) > (:after_merchant_id, :after_currency)
 order by m.id, b.currency
 limit :most;

-- name: payee_of(live, merchant_id, currency, now)^
-- One merchant, with what it has available of a currency, be that nothing or less; of the first that it has any of, of its
-- newest payout's, or of the first that it ever had, if none is asked for. An empty one if it had none.
with part as materialized (
    select currency, coalesce(-sum(amount) filter (where account = 'available'), 0) as available
      from balance_parts(:merchant_id, :live)
     group by currency
)
select m.id as merchant_id, m.name as merchant_name, c.currency,
       coalesce((select available from part where part.currency = c.currency), 0) as available,
       :live and m.suspended_at is not null as suspended, :live and coalesce(p.status <> 'accepted', false) as unaccepted,
       case when :live and p.payouts_from > :now then p.payouts_from end as payouts_from
  from merchant m
  left join business_profile p on p.merchant_id = m.id
 cross join lateral (
     select coalesce(:currency::text, (select min(currency) from part where available > 0),
                     (select currency
                        from payout
                       where merchant_id = m.id and live = :live
                       order by at desc, id desc
                       limit 1),
                     (select min(currency) from part), '') as currency
 ) c
 where m.id = :merchant_id;

-- name: payouts_of_all(live, before_at, before_id, since, until, most)
-- The payouts to all merchants, newest first.
select p.id, p.currency, p.amount, p.reference, p.recorded_by, p.at, p.merchant_id, m.name as merchant_name
  from payout p
  join merchant m on m.id = p.merchant_id
 where p.live = :live and p.at >= :since and p.at < :until and (p.at, p.id) < (:before_at, :before_id)
 order by p.at desc, p.id desc
 limit :most;
