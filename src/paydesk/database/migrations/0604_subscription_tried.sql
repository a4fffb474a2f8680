-- oldest code: 150
-- A subscription as it stands, with what its next try waits for if its charge takes nothing: its dunning plan, and when
-- the acquirer last refused the request for this period and this card, if nothing was tried since, and how often by then.
-- Beside subscription_planned, for whoever pauses, resumes or foretells it.
create view subscription_tried as
select w.*, s.dunning, r.refused_at, r.refusals_until_then
  from subscription_planned w
  join subscription s on s.merchant_id = w.merchant_id and s.live = w.live and s.id = w.id
  left join lateral (
      select a.finished_at as refused_at,
             (select count(*)
                from payment_attempt b
               where b.merchant_id = p.merchant_id and b.live = p.live and b.payment_id = p.id
                 and b.decline_reason = 'request_refused') as refusals_until_then
        from payment p
        join payment_attempt a on a.merchant_id = p.merchant_id and a.live = p.live and a.id = p.attempt_id
       where p.merchant_id = w.merchant_id and p.live = w.live and p.subscription_id = w.id
         and p.period_number = w.next_period and a.card_id = w.card_id and a.decline_reason = 'request_refused'
       offset 0
  ) r on true;
