-- name: unanswered(merchant_id, live, payment_id, taken_for_the_same)
-- What was begun for callers without a key who were not told of it, as far as we know, and may have moved money; whether
-- nothing is left beside it; how long ago that was, by the database's clock. Oldest first.
select m.id, m.amount, clock_timestamp() - m.unanswered_since as age,
       m.kind = 'void' or p.amount <= p.refunded + p.refunding + greatest(p.charged_back, 0) as gives_all
  from movement m
  join payment p on p.merchant_id = m.merchant_id and p.live = m.live and p.id = m.payment_id
 where m.merchant_id = :merchant_id and m.live = :live and m.payment_id = :payment_id
   and m.state in ('processing', 'done') and m.unanswered_since > clock_timestamp() - :taken_for_the_same::interval
 order by m.id;

-- name: mark_answered(merchant_id, live, id)$
-- Of several equal calls one gets it as its answer.
update movement
   set unanswered_since = null
 where merchant_id = :merchant_id and live = :live and id = :id and unanswered_since is not null
returning id;
