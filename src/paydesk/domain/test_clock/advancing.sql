-- name: next_due(merchant_id)^
-- When the test side's next charge, expiry, change, deadline of an authorization and pingback fall due, and when a slow method
-- will have come to its end (null: never); only what nobody has in hand, and whether somebody has anything in hand (`in_hand`).
select (select min(date_next)
          from subscription
         where merchant_id = :merchant_id and live = false and date_next is not null and charging_attempt_id is null
           and charge_takes_long is null
       ) as charge_at,
       (select min(date_end)
          from subscription
         where merchant_id = :merchant_id and live = false and state = 'Active' and date_next is null
           and charging_attempt_id is null
       ) as expire_at,
       (select min(c.due_at)
          from subscription_change c
          join subscription s on s.merchant_id = c.merchant_id and s.live = c.live and s.id = c.subscription_id
         where c.merchant_id = :merchant_id and c.live = false and c.state = 'open' and c.due_at is not null
           and s.charging_attempt_id is null
       ) as change_at,
       (select min(shipping_due_at)
          from payment
         where merchant_id = :merchant_id and live = false and shipping_due_at is not null and moving_id is null
       ) as ship_at,
       (select p.due_at
          from merchant m
          join pingback p on p.merchant_id = m.id and p.live = false
         where m.id = :merchant_id and p.state = 'due' and (p.leased_until is null or p.leased_until < now())
           and (m.went_live_at is null or m.test_pingback_url is not null)
         order by p.due_at
         limit 1
       ) as send_at,
       (select min(coalesce(a.sure_by, h.sure_by))
          from payment_attempt a
          left join hosted_page h on h.merchant_id = a.merchant_id and h.live = a.live and h.attempt_id = a.id
         where a.merchant_id = :merchant_id and a.live = false and a.state = 'pending'
       ) as sure_at,
       exists (select
                 from payment_attempt
                where lookup_at is not null and merchant_id = :merchant_id and live = false and state = 'processing')
       or exists (select
                    from pingback
                   where merchant_id = :merchant_id and live = false and state = 'due' and leased_until > now()
       ) as in_hand;

-- name: ask_for_pending(merchant_id, at, real_now)!
-- The payments whose slow method has come to its end by :at: the bank may be asked at once.
update payment_attempt a
   set lookup_at = :real_now
 where a.merchant_id = :merchant_id and a.live = false and a.state = 'pending' and a.lookup_at > :real_now
   and coalesce(a.sure_by, (select h.sure_by
                              from hosted_page h
                             where h.merchant_id = a.merchant_id and h.live = a.live and h.attempt_id = a.id)) <= :at;

-- name: in_hand(merchant_id)^
-- What of the test side is under way: payments without an outcome, and pingbacks that a sender holds.
select (select count(*)
          from payment_attempt
         where lookup_at is not null and merchant_id = :merchant_id and live = false and state = 'processing'
       ) as attempts,
       (select count(*)
          from pingback
         where merchant_id = :merchant_id and live = false and state = 'due' and leased_until > now()
       ) as pingbacks;

-- name: look_up_now(merchant_id, at, real_now)!
-- The renewals that were charged at :at and have no outcome: the call is over, so the bank may be asked at once.
update payment_attempt
   set lookup_at = :real_now
 where lookup_at > :real_now and merchant_id = :merchant_id and live = false and state = 'processing'
   and checkout_id is null and created_at = :at and lookups = 0;

-- name: unsettled(merchant_id, most)
select subscription_id
  from payment p
  join payment_attempt a on a.merchant_id = p.merchant_id and a.live = p.live and a.id = p.attempt_id
 where a.lookup_at is not null and a.merchant_id = :merchant_id and a.live = false and a.state = 'processing'
   and p.subscription_id is not null
 order by p.subscription_id
 limit :most;

-- name: happened(merchant_id, since, until, most)
-- What happened on the test side between two of its moments, in order: the first :most, and beyond these the first of
-- each kind; `times` is how often its kind happened in all.
with event as (
    select p.paid_at as at, 1 as rank, 'payment' as what, p.subscription_id, p.id as payment_id,
           null::bigint as pingback_id
      from payment p
     where p.merchant_id = :merchant_id and p.live = false and p.renewal and p.paid_at between :since and :until
     union all
    select a.finished_at, 1, 'payment_' || a.state, p.subscription_id, p.id, null
      from payment_attempt a
      join payment p on p.merchant_id = a.merchant_id and p.live = a.live and p.id = a.payment_id
     where a.merchant_id = :merchant_id and a.live = false and p.renewal and a.state in ('declined', 'failed')
       and a.finished_at between :since and :until
     union all
    select a.finished_at, 1, case a.state when 'approved' then 'payment_arrived' else 'payment_not_arrived' end, null,
           a.payment_id, null
      from hosted_page h
      join payment_attempt a on a.merchant_id = h.merchant_id and a.live = h.live and a.id = h.attempt_id
     where h.merchant_id = :merchant_id and h.live = false and h.sure_by is not null
       and a.state in ('approved', 'declined', 'failed') and a.finished_at between :since and :until
     union all
    select s.date_stopped, 2, 'subscription_stopped', s.id, null, null
      from subscription s
     where s.merchant_id = :merchant_id and s.live = false and s.date_stopped between :since and :until
     union all
    select s.date_expired, 2, 'subscription_expired', s.id, null, null
      from subscription s
     where s.merchant_id = :merchant_id and s.live = false and s.date_expired between :since and :until
     union all
    select c.due_at, case c.type when 'change' then 0 else 2 end,
           case c.type when 'cancel' then 'subscription_cancelled' when 'change' then 'subscription_changed'
                       else 'subscription_resumed' end,
           c.subscription_id, null, null
      from subscription_change c
     where c.merchant_id = :merchant_id and c.live = false and c.state = 'done' and c.finished_at >= c.due_at
       and c.due_at between :since and :until
     union all
    select c.opened_at, 2, 'chargeback', p.subscription_id, p.id, null
      from chargeback c
      join payment p on p.merchant_id = c.merchant_id and p.live = c.live and p.id = c.payment_id
     where c.merchant_id = :merchant_id and c.live = false and c.opened_at between :since and :until
     union all
    select v.finished_at, 2, 'payment_voided', null, v.payment_id, null
      from movement v
     where v.merchant_id = :merchant_id and v.live = false and v.kind = 'void' and v.state = 'done'
       and v.requested_by = 'deadline' and v.finished_at between :since and :until
     union all
    select l.at, 2, l.kind, p.subscription_id, p.id, null
      from ledger_entry l
      join payment p on p.merchant_id = l.merchant_id and p.live = l.live and p.id = l.payment_id
     where l.merchant_id = :merchant_id and l.live = false and l.account = 'available'
       and l.kind in ('settlement', 'reserve_release') and l.at between :since and :until
     union all
    select t.at, 3, case when t.acknowledged then 'pingback_acknowledged' else 'pingback_failed' end,
           coalesce(g.subscription_id, p.subscription_id), g.payment_id, g.id
      from (select pingback_id, at, status = 200 and lower(btrim(response_body, E' \t\r\n\v\f')) = 'ok' and error = ''
                   as acknowledged
              from pingback_attempt
             where merchant_id = :merchant_id and live = false and at between :since and :until) t
      join pingback g on g.merchant_id = :merchant_id and g.live = false and g.id = t.pingback_id
      left join payment p on p.merchant_id = g.merchant_id and p.live = g.live and p.id = g.payment_id
)
select at, what, subscription_id, payment_id, pingback_id, times, place, place_in_kind
  from (
      select *, count(*) over (partition by what) as times,
             row_number() over (order by at, rank, subscription_id, pingback_id) as place,
             row_number() over (partition by what order by at, rank, subscription_id, pingback_id) as place_in_kind
        from event
  ) placed
 where place <= :most or place_in_kind = 1
 order by place;
