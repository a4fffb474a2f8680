-- What merchants read through the API: each list, and each filter that may be narrow, has an index.

-- Lists are newest first and continue after a row, so the id stands beside the time.
drop index payment_by_time;
create index payment_by_time on payment (merchant_id, live, created_at, id);
drop index subscription_by_time;
create index subscription_by_time on subscription (merchant_id, live, created_at, id);
drop index pingback_by_time;
create index pingback_by_time on pingback (merchant_id, live, created_at, id);

-- Most payments are captured and most pingbacks acknowledged: the index by time serves those, this one the rest.
create index payment_by_state on payment (merchant_id, live, state, created_at, id) where state <> 'captured';
create index pingback_by_state on pingback (merchant_id, live, state, created_at, id) where state <> 'acknowledged';
create index subscription_by_state on subscription (merchant_id, live, state, created_at, id);

create index customer_by_email on customer (merchant_id, live, lower(email));
-- Renewals are found through their subscription's first payment, so that this index costs them nothing.
create index payment_by_customer on payment (merchant_id, live, customer_id) where not renewal;

-- The payments with an order reference: the shop's own, and the renewal that has made this reference from it.
create function payments_of_reference(merchant bigint, side boolean, reference text) returns setof bigint
language sql stable as $$
    select p.id
      from payment p
     where p.merchant_id = merchant and p.live = side and p.merchant_order_id = reference and not p.renewal
     union all
    select r.id
      from payment p
      join subscription s on s.merchant_id = p.merchant_id and s.live = p.live and s.init_payment_id = p.id
      join payment r
        on r.merchant_id = s.merchant_id and r.live = s.live and r.subscription_id = s.id
       and r.subscription_id is not null
     where p.merchant_id = merchant and p.live = side and not p.renewal
       and p.merchant_order_id = regexp_replace(reference, ':[0-9]+$', '')
       and r.renewal and r.merchant_order_id = reference
$$;

-- The payments of whoever has an e-mail address, in lower case: at checkouts, and the renewals that followed.
create function payments_of_email(merchant bigint, side boolean, address text) returns setof bigint
language sql stable as $$
    with first as (
        select p.merchant_id, p.live, p.id
          from customer u
          join payment p on p.merchant_id = u.merchant_id and p.live = u.live and p.customer_id = u.id
         where u.merchant_id = merchant and u.live = side and lower(u.email) = address and not p.renewal
    )
    select id from first
     union all
    select r.id
      from first
      join subscription s on s.merchant_id = first.merchant_id and s.live = first.live and s.init_payment_id = first.id
      join payment r
        on r.merchant_id = s.merchant_id and r.live = s.live and r.subscription_id = s.id
       and r.subscription_id is not null and r.renewal
$$;

-- The pingbacks about payments, and about the ends of the subscriptions that these payments began.
create function pingbacks_about(merchant bigint, side boolean, payments bigint[]) returns setof bigint
language sql stable as $$
    select b.id
      from pingback b
     where b.merchant_id = merchant and b.live = side and b.event = 'payment' and b.payment_id = any(payments)
     union all
    select b.id
      from subscription s
      join pingback b on b.merchant_id = s.merchant_id and b.live = s.live and b.subscription_id = s.id
     where s.merchant_id = merchant and s.live = side and s.init_payment_id = any(payments)
       and b.event in ('subscription_cancelled', 'subscription_stopped', 'subscription_expired')
$$;

create view payment_whole as
select p.merchant_id, p.live, p.id, p.merchant_order_id, p.state, p.amount, p.currency, p.net, p.reserve, p.fees,
       p.subscription_id, p.created_at, p.paid_at, u.first_name, u.last_name, u.username, u.country, u.email,
       c.brand, c.last4, a.decline_reason
  from payment p
  join customer u on u.merchant_id = p.merchant_id and u.live = p.live and u.id = p.customer_id
  join card c on c.merchant_id = p.merchant_id and c.live = p.live and c.id = p.card_id
  join payment_attempt a on a.merchant_id = p.merchant_id and a.live = p.live and a.id = p.attempt_id;
