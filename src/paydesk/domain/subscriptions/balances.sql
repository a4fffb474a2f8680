-- name: find_balance(merchant_id, live, id)$
select balance from subscription where merchant_id = :merchant_id and live = :live and id = :id;

-- name: period_paid(merchant_id, live, id)^
-- What was paid for the period that runs, at which price, what of it was given back or is being so (with what was charged
-- as it began at once), and the changes of plan in it that were prorated, oldest first.
select s.revision, s.balance, p.amount + coalesce(p.into_balance, 0) as price,
       p.refunded + p.refunding + p.charged_back
       + given_back_of_begun(p.merchant_id, p.live, p.subscription_id, p.period_number) as given_back,
       exists (select
                 from subscription_difference d
                 join payment_attempt a on a.merchant_id = d.merchant_id and a.live = d.live and a.id = d.attempt_id
                 join payment q on q.merchant_id = a.merchant_id and q.live = a.live and q.id = a.payment_id
                where d.merchant_id = s.merchant_id and d.live = s.live and d.subscription_id = s.id
                  and d.period_number = p.period_number and d.anchor is null and d.state = 'paid'
                  and q.refunded + q.refunding + q.charged_back > 0)
           as given_back_since,
       (select coalesce(jsonb_agg(jsonb_build_object(
                   'period_number', n.period_number, 'began_at', n.began_at, 'ends_at', n.ends_at, 'at', n.at,
                   'old_price', n.old_price::text, 'new_price', n.new_price::text, 'given_back', n.given_back::text,
                   'amount', n.amount::text) order by n.change_id), '[]')::text
          from subscription_proration n
         where n.merchant_id = s.merchant_id and n.live = s.live and n.subscription_id = s.id
           and n.period_number = p.period_number) as earlier
  from subscription s
  join payment p
    on p.merchant_id = s.merchant_id and p.live = s.live and p.subscription_id = s.id
   and p.period_number = s.next_period - 1 and p.paid_at is not null
 where s.merchant_id = :merchant_id and s.live = :live and s.id = :id;
