-- oldest code: 150
-- The cards of subscriptions from before; what began meanwhile was written down by the trigger.
insert into card_expiry (merchant_id, live, subscription_id, card_id, expires_at)
select s.merchant_id, s.live, s.id, c.id,
       (make_date(c.exp_year, c.exp_month, 1) + interval '1 month') at time zone s.time_zone
  from subscription s
  join card c on c.merchant_id = s.merchant_id and c.id = s.card_id
 where s.state in ('Trial', 'Active') and c.exp_month between 1 and 12 and c.exp_year > 0 and c.wallet = ''
    on conflict (merchant_id, subscription_id) do nothing;
