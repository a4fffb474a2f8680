-- name: failing_now(merchant_id, live)
-- What is failing just now, by currency and by the bank's last reason: the few that an index of their own keeps.
select v.currency, coalesce(n.reason, '') as reason, count(*) as charges, sum(v.price) as amount
  from subscription s
  join package_version v on v.merchant_id = s.merchant_id and v.live = s.live and v.id = s.package_version_id
  left join lateral (
      select a.decline_reason as reason
        from payment p
        join payment_attempt a on a.merchant_id = p.merchant_id and a.live = p.live and a.payment_id = p.id
       where p.merchant_id = s.merchant_id and p.live = s.live and p.subscription_id = s.id
         and p.period_number = s.next_period and a.state = 'declined'
         and a.decline_reason not in ('too_late', 'request_refused')
       order by a.number desc
       limit 1
  ) n on true
 where s.merchant_id = :merchant_id and s.live = :live and s.failures > 0 and s.state in ('Trial', 'Active')
 group by 1, 2
 order by 3 desc, 1, 2;

-- name: dunning_figures(merchant_id, live, since, until)
-- What became of the renewals that were first tried in a period and declined at least once, by how often, and by the
-- bank's last reason. A decline that came too late, or a request that the acquirer refused, is no failure of the card.
select c.outcome, c.tries, c.reason, c.currency, count(*) as charges, sum(c.amount) as amount
  from (
      select case when p.state not in ('declined', 'processing', 'challenged', 'pending') then 'recovered'
                  when s.state in ('Trial', 'Active') then 'open'
                  when s.date_stopped is not null then 'lost'
                  else 'ended' end as outcome,
             n.tries, n.reason, p.currency, p.amount
        from payment p
        join subscription s on s.merchant_id = p.merchant_id and s.live = p.live and s.id = p.subscription_id
       cross join lateral (
           select count(*)::integer as tries, (array_agg(a.decline_reason order by a.number desc))[1] as reason
             from payment_attempt a
            where a.merchant_id = p.merchant_id and a.live = p.live and a.payment_id = p.id and a.state = 'declined'
              and a.decline_reason not in ('too_late', 'request_refused')
       ) n
       where p.merchant_id = :merchant_id and p.live = :live and p.renewal
         and p.created_at >= :since and p.created_at < :until and n.tries > 0
  ) c
 group by 1, 2, 3, 4
 order by 1, 2, 3, 4;

-- name: failed_charges(merchant_id, live, since, until, before_at, before_id, most)
-- The same renewals one by one, newest first.
select p.id as payment_id, p.subscription_id, p.merchant_order_id, p.period_number as period, p.amount, p.currency,
       p.created_at, p.paid_at, n.tries, n.reason,
       case when p.state not in ('declined', 'processing', 'challenged', 'pending') then 'recovered'
            when s.state in ('Trial', 'Active') then 'open'
            when s.date_stopped is not null then 'lost'
            else 'ended' end as outcome
  from payment p
  join subscription s on s.merchant_id = p.merchant_id and s.live = p.live and s.id = p.subscription_id
 cross join lateral (
     select count(*)::integer as tries, (array_agg(a.decline_reason order by a.number desc))[1] as reason
       from payment_attempt a
      where a.merchant_id = p.merchant_id and a.live = p.live and a.payment_id = p.id and a.state = 'declined'
        and a.decline_reason not in ('too_late', 'request_refused')
 ) n
 where p.merchant_id = :merchant_id and p.live = :live and p.renewal
   and p.created_at >= :since and p.created_at < :until and (p.created_at, p.id) < (:before_at, :before_id)
   and n.tries > 0
 order by p.created_at desc, p.id desc
 limit :most;
