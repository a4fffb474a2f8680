-- name: list_instruments(merchant_id, live, email, since, until, before_at, before_id, most)
-- One side's saved cards, newest first, of one address or (null) of all. Who has charged one back, since they agreed, has
-- agreed to nothing (find_chargeable).
select s.id, u.email, c.brand, c.last4, c.exp_month, c.exp_year, s.charge_for,
       case when s.charge_revoked_at is null and not exists (
                select
                  from saved_instrument o
                  join card d on d.merchant_id = o.merchant_id and d.live = o.live and d.id = o.card_id
                  join instrument_charge i on i.merchant_id = o.merchant_id and i.live = o.live and i.instrument_id = o.id
                  join chargeback k on k.merchant_id = i.merchant_id and k.live = i.live and k.payment_id = i.payment_id
                 where o.merchant_id = s.merchant_id and o.live = s.live and o.shopper_id = s.shopper_id
                   and (d.brand, d.last4, d.exp_month, d.exp_year) = (c.brand, c.last4, c.exp_month, c.exp_year)
                   and k.state <> 'inquiry' and k.opened_at >= s.charge_agreed_at)
             and not exists (
                select
                  from chargeback k
                 where k.merchant_id = s.merchant_id and k.live = s.live and k.payment_id = a.payment_id
                   and k.state <> 'inquiry')
            then s.charge_agreed_at end as charge_agreed_at, s.charge_limit,
       s.charge_currency, coalesce(s.authenticated, a.challenge_url <> '') as authenticated, s.created_at
  from saved_instrument s
  join shopper u on u.merchant_id = s.merchant_id and u.live = s.live and u.id = s.shopper_id
  join payment_attempt a
    on a.merchant_id = s.merchant_id and a.live = s.live and a.id = s.attempt_id and a.state = 'approved'
  join card c
    on c.merchant_id = s.merchant_id and c.live = s.live and c.id = s.card_id
   and (c.number_sealed is not null or c.stored_reference <> '')
 where s.merchant_id = :merchant_id and s.live = :live and s.removed_at is null
   and (:email::text is null or lower(u.email) = lower(:email))
   and s.created_at >= :since and s.created_at < :until and (s.created_at, s.id) < (:before_at, :before_id)
 order by s.created_at desc, s.id desc
 limit :most;
