-- name: open_outcomes(begun_before, after_at, after_id, most)
-- What is without an outcome, whoever sold it: attempts to take money, and captures, voids and refunds; longest open first.
-- Both come from the janitor's own indexes. An attempt's key lives for a minute from its real beginning, and a
-- movement's beginning is reckoned back from its side's clock, so that all times are real ones.
select w.*, m.name as merchant_name
  from (
      select a.merchant_id, a.live, a.id, a.payment_id,
             case when a.state = 'voiding' then 'undoing'
                  when p.renewal then 'renewal' when i.attempt_id is not null or d.attempt_id is not null then 'charge'
                  else 'payment' end as kind,
             a.amount, a.currency, a.acquirer, a.not_after - interval '1 minute' as since, a.lookups, a.lookup_at,
             a.alerted_at
        from payment_attempt a
        left join payment p on p.merchant_id = a.merchant_id and p.live = a.live and p.id = a.payment_id
        left join instrument_charge i on i.merchant_id = a.merchant_id and i.live = a.live and i.attempt_id = a.id
        left join subscription_difference d
          on d.merchant_id = a.merchant_id and d.live = a.live and d.attempt_id = a.id
       where a.lookup_at is not null and a.state in ('processing', 'voiding')
       union all
      select v.merchant_id, v.live, v.id, v.payment_id, v.kind, v.amount, v.currency, v.acquirer,
             v.created_at - side_clock(v.live, s.test_clock), v.lookups, v.lookup_at,
             v.alerted_at
        from movement v
        join merchant s on s.id = v.merchant_id
       where v.lookup_at is not null
  ) w
  join merchant m on m.id = w.merchant_id
 where w.since < :begun_before and (w.since, w.id) > (:after_at, :after_id)
 order by w.since, w.id
 limit :most;

-- name: ask_about_attempt(merchant_id, live, id, now)$
-- The janitor looks at once. Its lease stays: who asks just now goes on.
update payment_attempt
   set lookup_at = least(lookup_at, :now)
 where merchant_id = :merchant_id and live = :live and id = :id and lookup_at is not null
   and state in ('processing', 'voiding')
returning payment_id;

-- name: ask_about_movement(merchant_id, live, id, now)$
update movement
   set lookup_at = least(lookup_at, :now)
 where merchant_id = :merchant_id and live = :live and id = :id and lookup_at is not null
returning payment_id;
