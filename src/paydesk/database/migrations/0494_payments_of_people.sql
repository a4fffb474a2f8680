-- oldest code: 150
-- Payments (no renewals) of a customer, and with a card: the one that it names, if that still is of it, and those by
-- index. Planned as a part of its statement, so that it may be asked for each of many rows.
create function payments_of_customer(merchant bigint, side boolean, customer bigint) returns table (payment_id bigint)
language sql stable parallel safe as $$
    select p.id
      from customer u
      join payment p
        on p.merchant_id = u.merchant_id and p.live = u.live and p.id = u.payment_id and p.customer_id = u.id
       and p.people_of = p.attempt_id
     where u.merchant_id = merchant and u.live = side and u.id = customer
     union all
    select p.id
      from payment p
     where p.merchant_id = merchant and p.live = side and p.customer_id = customer
       and not p.renewal and p.people_of is distinct from p.attempt_id
$$;

create function payments_with_card(merchant bigint, side boolean, card bigint) returns table (payment_id bigint)
language sql stable parallel safe as $$
    select p.id
      from card c
      join payment p
        on p.merchant_id = c.merchant_id and p.live = c.live and p.id = c.payment_id and p.card_id = c.id
       and p.people_of = p.attempt_id
     where c.merchant_id = merchant and c.live = side and c.id = card
     union all
    select p.id
      from payment p
     where p.merchant_id = merchant and p.live = side and p.card_id = card
       and not p.renewal and p.people_of is distinct from p.attempt_id
$$;

create or replace function payments_of_email(merchant bigint, side boolean, address text) returns setof bigint
language sql stable as $$
    with first as (
        select p.payment_id as id
          from customer u
         cross join lateral payments_of_customer(merchant, side, u.id) p
         where u.merchant_id = merchant and u.live = side and lower(u.email) = address
    )
    select id from first
     union all
    select r.id
      from first
      join subscription s on s.merchant_id = merchant and s.live = side and s.init_payment_id = first.id
      join payment r
        on r.merchant_id = s.merchant_id and r.live = s.live and r.subscription_id = s.id
       and r.subscription_id is not null and r.renewal
$$;

create or replace function payments_of_last4(merchant bigint, side boolean, digits text) returns setof bigint
language sql stable as $$
    with found as materialized (
        select id from card where merchant_id = merchant and live = side and last4 = digits
    ), first as (
        select p.payment_id as id
          from found
         cross join lateral payments_with_card(merchant, side, found.id) p
    ), charged as (
        select s.id
          from first
          join subscription s on s.merchant_id = merchant and s.live = side and s.init_payment_id = first.id
         union
        select c.subscription_id
          from found
          join card_change c on c.merchant_id = merchant and c.live = side and c.card_id = found.id
    )
    select id from first
     union all
    select r.id
      from charged
      join payment r
        on r.merchant_id = merchant and r.live = side and r.subscription_id = charged.id
       and r.subscription_id is not null
      join card c on c.merchant_id = r.merchant_id and c.live = r.live and c.id = r.card_id
     where r.renewal and c.last4 = digits
$$;

create or replace function uses_by(of_merchant bigint, of_live boolean, of_coupon bigint, but_checkout bigint,
                                   address text)
    returns bigint
    language sql stable as $$
    select count(*)
      from customer c
     cross join lateral payments_of_customer(of_merchant, of_live, c.id) own
      join payment p on p.merchant_id = c.merchant_id and p.live = c.live and p.id = own.payment_id
      join coupon_use u on u.merchant_id = p.merchant_id and u.checkout_id = p.checkout_id
     where c.merchant_id = of_merchant and c.live = of_live and lower(c.email) = lower(address)
       and u.coupon_id = of_coupon and u.checkout_id <> but_checkout
       and p.state not in ('declined', 'voided');
$$;
