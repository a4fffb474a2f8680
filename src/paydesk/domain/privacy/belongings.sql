-- name: emails_of_order(merchant_id, live, order_reference)
-- Whoever paid, or was to pay, an order: the addresses that were typed and prefilled.
select u.email
  from payment p
  join customer u on u.merchant_id = p.merchant_id and u.live = p.live and u.id = p.customer_id
 where p.merchant_id = :merchant_id and p.live = :live and p.merchant_order_id = :order_reference and not p.renewal
   and u.email <> '' and u.erased_at is null
 union
select c.email
  from checkout c
 where c.merchant_id = :merchant_id and c.live = :live and c.merchant_order_id = :order_reference
   and c.email not in ('', 'erased');

-- name: in_small_letters(emails)
-- Addresses as all statements compare them: which letters become which, the database's locale says.
select distinct lower(one.email) as email from unnest(:emails::text[]) one (email);

-- name: addresses_of(merchant_id, live, emails, customers, checkouts, shoppers)
-- A person's addresses as they were typed: addresses of pages write `Ö` and `ö` as different numbers.
select typed.email
  from (
      select email from customer where merchant_id = :merchant_id and live = :live and id = any(:customers::bigint[])
       union
      select email from checkout where merchant_id = :merchant_id and live = :live and id = any(:checkouts::bigint[])
       union
      select email from shopper where merchant_id = :merchant_id and live = :live and id = any(:shoppers::bigint[])
  ) typed
 where lower(typed.email) = any(:emails::text[]);

-- name: rows_of(merchant_id, live, emails, order_reference, patterns, wholes)^
-- The ids of all rows of one side that are about whoever has these addresses (lower case), or about an order: payments
-- with what began them, and what followed from them. `patterns` are the addresses as `like` finds them in texts, soon;
-- `wholes` tell them from the ends of others' addresses.
with customers as (
    select id
      from customer
     where merchant_id = :merchant_id and live = :live and lower(email) = any(:emails::text[])
), first as (
    select p.id, p.merchant_order_id
      from customers u
     cross join lateral payments_of_customer(:merchant_id, :live, u.id) own
      join payment p on p.merchant_id = :merchant_id and p.live = :live and p.id = own.payment_id
     union
    select p.id, p.merchant_order_id
      from payment p
     where p.merchant_id = :merchant_id and p.live = :live and p.merchant_order_id = :order_reference::text
       and not p.renewal
), subscriptions as (
    select s.id
      from first
      join subscription s on s.merchant_id = :merchant_id and s.live = :live and s.init_payment_id = first.id
), payments as (
    select id from first
     union
    select p.id
      from subscriptions s
      join payment p
        on p.merchant_id = :merchant_id and p.live = :live and p.subscription_id = s.id and p.subscription_id is not null
), attempts as (
    select a.id, a.card_id, a.checkout_id
      from payments p
      join payment_attempt a on a.merchant_id = :merchant_id and a.live = :live and a.payment_id = p.id
), changes as (
    select c.id, c.card_id
      from subscriptions s
      join card_change c on c.merchant_id = :merchant_id and c.live = :live and c.subscription_id = s.id
), checkouts as (
    select checkout_id as id from attempts where checkout_id is not null
     union
    select c.id
      from (select merchant_order_id from first union select :order_reference::text) o
      join checkout c on c.merchant_id = :merchant_id and c.live = :live and c.merchant_order_id = o.merchant_order_id
     union
    -- All of the merchant's are read: plugins send addresses in fields of their own, and nothing that is written for
    -- every payment should serve this.
    select c.id
      from checkout c
     where c.merchant_id = :merchant_id and c.live = :live
       and (lower(c.email) = any(:emails::text[])
            or lower(c.parameters::text) like any(:patterns::text[]) and lower(c.parameters::text) ~ any(:wholes::text[])
            or lower(c.line_items::text) like any(:patterns::text[]) and lower(c.line_items::text) ~ any(:wholes::text[]))
), shoppers as (
    select id
      from shopper
     where merchant_id = :merchant_id and live = :live and lower(email) = any(:emails::text[])
), instruments as (
    -- Those that they saved, and those of their own payments: whoever saved them paid with their card.
    select s.id, s.card_id
      from shoppers
      join saved_instrument s on s.merchant_id = :merchant_id and s.live = :live and s.shopper_id = shoppers.id
     union
    select s.id, s.card_id
      from attempts a
      join saved_instrument s on s.merchant_id = :merchant_id and s.live = :live and s.attempt_id = a.id
), paying as (
    select customer_id as id from payment
     where merchant_id = :merchant_id and live = :live and id in (select id from payments)
     union
    select id from customers
)
select array(select id from paying order by id) as customers,
       array(select id from payments order by id) as payments,
       array(select id from subscriptions order by id) as subscriptions,
       array(select id from attempts order by id) as attempts,
       array(select id from changes order by id) as changes,
       array(select id from checkouts order by id) as checkouts,
       array(select card_id from attempts
              union
             select card_id from changes
              union
             select card_id from instruments
              union
             select card_id from payment
              where merchant_id = :merchant_id and live = :live and id in (select id from payments)
              order by 1) as cards,
       array(select b.id
               from pingback b
              where b.merchant_id = :merchant_id and b.live = :live
                and (b.payment_id in (select id from payments) or b.subscription_id in (select id from subscriptions))
              order by b.id) as pingbacks,
       array(select d.id from delivery d
              where d.merchant_id = :merchant_id and d.live = :live and d.payment_id in (select id from payments)
              order by d.id) as deliveries,
       array(select b.id from chargeback b
              where b.merchant_id = :merchant_id and b.live = :live and b.payment_id in (select id from payments)
              order by b.id) as chargebacks,
       array(select v.id from movement v
              where v.merchant_id = :merchant_id and v.live = :live and v.payment_id in (select id from payments)
              order by v.id) as movements,
       array(select id from shoppers order by id) as shoppers,
       array(select id from instruments order by id) as instruments;

-- name: names_of(merchant_id, live, customers, cards, checkouts)
-- The names that a person went by, as they were typed, and in small letters: addresses of pages write `Ö` and `ö` as
-- different numbers.
select distinct written.name
  from (
      select concat_ws(' ', nullif(first_name, ''), nullif(last_name, '')) as name
        from customer
       where merchant_id = :merchant_id and live = :live and id = any(:customers::bigint[]) and erased_at is null
       union
      select holder
        from card
       where merchant_id = :merchant_id and live = :live and id = any(:cards::bigint[]) and holder <> 'erased'
       union
      select concat_ws(' ', nullif(first_name, ''), nullif(last_name, ''))
        from checkout
       where merchant_id = :merchant_id and live = :live and id = any(:checkouts::bigint[]) and first_name <> 'erased'
  ) typed
 cross join lateral (values (typed.name), (lower(typed.name))) as written (name);

-- name: orders_of(merchant_id, live, payments, checkouts)
select merchant_order_id from payment
 where merchant_id = :merchant_id and live = :live and id = any(:payments::bigint[])
 union
select merchant_order_id from checkout
 where merchant_id = :merchant_id and live = :live and id = any(:checkouts::bigint[]);

-- name: standing_in_the_way(merchant_id, live, subscriptions, attempts, movements, changes, pingbacks)^
-- What is not over: it still has to tell somebody, or to charge.
select array(select id from subscription
              where merchant_id = :merchant_id and live = :live and id = any(:subscriptions::bigint[])
                and state in ('Trial', 'Active') order by id) as running,
       (select count(*) from pingback
         where merchant_id = :merchant_id and live = :live and id = any(:pingbacks::bigint[])
           and state = 'due') as due,
       (select count(*) from payment_attempt
         where merchant_id = :merchant_id and live = :live and id = any(:attempts::bigint[])
           and state in ('processing', 'challenged', 'pending', 'voiding'))
       + (select count(*) from movement
           where merchant_id = :merchant_id and live = :live and id = any(:movements::bigint[])
             and state = 'processing')
       + (select count(*) from card_change
           where merchant_id = :merchant_id and live = :live and id = any(:changes::bigint[])
             and state in ('processing', 'challenged')) as open;

-- name: emails_known(merchant_id)
-- Every address of a merchant's customers, and the ways in which it was typed.
select lower(typed.email) as email, array_agg(typed.email) as typed
  from (
      select email from customer where merchant_id = :merchant_id and erased_at is null
       union
      select email from checkout where merchant_id = :merchant_id and email <> ''
       union
      select recipient from mail where merchant_id = :merchant_id
       union
      select email from shopper where merchant_id = :merchant_id and erased_at is null
  ) typed
 group by lower(typed.email);

-- name: orders_known(merchant_id)
-- The orders of a merchant's checkouts.
select distinct merchant_order_id from checkout where merchant_id = :merchant_id;
