-- oldest code: 150
-- A payment as it stands, with what a reversal of it changes and tells: its money, its customer, and where its merchant
-- hears of it. Rows fill a class, whose fields are these columns: other ones go into another view, beside this one.
create view reversible_payment as
select p.merchant_id, p.live, p.id as payment_id, p.merchant_order_id, p.state, p.revision, p.amount, p.currency, p.net,
       p.reserve, p.fees, p.refunded, p.charged_back, p.pending_taken, p.reserve_taken, p.fees_taken, p.settled_at,
       p.reserve_released_at, p.paid_at, p.subscription_id, p.pingback_url as form_url, p.sign_version,
       u.first_name, u.last_name, u.username, u.country, u.email,
       m.pingback_url as account_url, m.test_pingback_url, m.went_live_at, m.pingback_format, m.muted_events
  from payment p
  join customer u on u.merchant_id = p.merchant_id and u.live = p.live and u.id = p.customer_id
  join merchant m on m.id = p.merchant_id;
