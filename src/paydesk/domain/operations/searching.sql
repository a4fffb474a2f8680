-- What one box may mean, over all merchants: ids and references are a merchant's own, so each merchant's index is asked for
-- them, on both sides; the newest of each come first.

-- name: payments(text, email, last4, number, most)
-- Payments of an order, a customer's address, a card's last four digits (the newest cards that end so), an id, or what the
-- acquirer calls an attempt, a capture or a refund.
with found as materialized (
    select one.merchant_id, one.live, one.id
      from merchant m
     cross join (values (true), (false)) as side (live)
     cross join lateral (
         (select m.id as merchant_id, side.live, id
            from payments_of_reference(m.id, side.live, :text) as id
           order by id desc
           limit :most::integer)
          union
         (select p.merchant_id, p.live, p.id
            from payment p
           where p.merchant_id = m.id and p.live = side.live and p.id = :number::bigint)
          union
         (select m.id as merchant_id, side.live, id
            from payments_of_email(m.id, side.live, lower(:email::text)) as id
           where :email::text is not null
           order by id desc
           limit :most::integer)
          union
         (select m.id, side.live, p.payment_id
            from (select id
                    from card
                   where merchant_id = m.id and live = side.live and last4 = :last4::text
                   order by id desc
                   limit :most::integer) c
           cross join lateral payments_with_card(m.id, side.live, c.id) p
           order by p.payment_id desc
           limit :most::integer)
     ) one
     union
    select merchant_id, live, payment_id
      from payment_attempt
     where acquirer_reference = :text and acquirer_reference <> ''
     union
    select merchant_id, live, payment_id
      from movement
     where acquirer_reference = :text and acquirer_reference <> ''
)
select w.merchant_id, m.name as merchant_name, w.live, w.id, w.merchant_order_id, w.state, w.amount, w.currency,
       w.created_at, w.brand, w.last4
  from (select * from found order by id desc limit :most::integer) f
  join payment_whole w on w.merchant_id = f.merchant_id and w.live = f.live and w.id = f.id
  join merchant m on m.id = w.merchant_id
 order by w.id desc;

-- name: subscriptions(text, email, number, most)
-- Subscriptions by their id, the order that they began with, or their customer's address.
with found as materialized (
    select one.merchant_id, one.live, one.id
      from merchant m
     cross join (values (true), (false)) as side (live)
     cross join lateral (
         select s.merchant_id, s.live, s.id
           from subscription s
          where s.merchant_id = m.id and s.live = side.live and s.id = :number::bigint
          union
         select s.merchant_id, s.live, s.id
           from payment p
           join subscription s on s.merchant_id = p.merchant_id and s.live = p.live and s.init_payment_id = p.id
          where p.merchant_id = m.id and p.live = side.live and p.merchant_order_id = :text and not p.renewal
          union
         (select s.merchant_id, s.live, s.id
            from customer u
           cross join lateral payments_of_customer(u.merchant_id, u.live, u.id) p
            join subscription s on s.merchant_id = u.merchant_id and s.live = u.live and s.init_payment_id = p.payment_id
           where u.merchant_id = m.id and u.live = side.live and lower(u.email) = lower(:email::text)
           order by s.id desc
           limit :most::integer)
     ) one
)
select s.merchant_id, m.name as merchant_name, s.live, s.id, s.init_merchant_order_id as merchant_order_id, s.state,
       v.name as package, v.price as amount, v.currency, s.created_at
  from (select * from found order by id desc limit :most::integer) f
  join subscription s on s.merchant_id = f.merchant_id and s.id = f.id
  join package_version v on v.merchant_id = s.merchant_id and v.live = s.live and v.id = s.package_version_id
  join merchant m on m.id = s.merchant_id
 order by s.id desc;

-- name: checkouts(text, number, most)
-- Checkouts of an order or by their id, with what it is that pays the order.
with found as materialized (
    select one.merchant_id, one.live, one.id
      from merchant m
     cross join (values (true), (false)) as side (live)
     cross join lateral (
         (select c.merchant_id, c.live, c.id
            from checkout c
           where c.merchant_id = m.id and c.live = side.live and c.merchant_order_id = :text
           order by c.id desc
           limit :most::integer)
          union
         select c.merchant_id, c.live, c.id
           from checkout c
          where c.merchant_id = m.id and c.live = side.live and c.id = :number::bigint
     ) one
)
select c.merchant_id, m.name as merchant_name, c.live, c.id, c.merchant_order_id, c.amount, c.currency, c.created_at,
       c.expires_at, p.id as payment_id, p.state as payment_state
  from (select * from found order by id desc limit :most::integer) f
  join checkout c on c.merchant_id = f.merchant_id and c.live = f.live and c.id = f.id
  join merchant m on m.id = c.merchant_id
  left join payment p
    on p.merchant_id = c.merchant_id and p.live = c.live and p.merchant_order_id = c.merchant_order_id and not p.renewal
 order by c.id desc;

-- name: payouts(text, number, most)
-- Payouts to merchants by the reference of the transfer, or their id.
select o.merchant_id, m.name as merchant_name, o.live, o.id, o.reference, o.amount, o.currency, o.at
  from merchant m
 cross join (values (true), (false)) as side (live)
 cross join lateral (
     select *
       from payout
      where merchant_id = m.id and live = side.live and reference = :text
      union
     select *
       from payout
      where merchant_id = m.id and live = side.live and id = :number::bigint
 ) o
 order by o.id desc
 limit :most;

-- name: chargebacks(text, number, most)
-- Chargebacks by their id, their payment's, or what the acquirer calls them.
select c.merchant_id, m.name as merchant_name, c.live, c.id, c.payment_id, c.state, c.amount, c.currency, c.opened_at
  from merchant m
 cross join (values (true), (false)) as side (live)
 cross join lateral (
     select *
       from chargeback
      where merchant_id = m.id and live = side.live and payment_id = :number::bigint
      union
     select *
       from chargeback
      where merchant_id = m.id and live = side.live and id = :number::bigint
      union
     select *
       from chargeback
      where merchant_id = m.id and live = side.live and acquirer_reference = :text and acquirer_reference <> ''
 ) c
 order by c.id desc
 limit :most;

-- name: pingbacks(number, most)
-- Pingbacks by their id.
select g.merchant_id, m.name as merchant_name, g.live, g.id, g.event, g.state, g.payment_id, g.subscription_id,
       g.created_at
  from merchant m
 cross join (values (true), (false)) as side (live)
 cross join lateral (
     select *
       from pingback
      where merchant_id = m.id and live = side.live and id = :number::bigint
 ) g
 order by g.id desc
 limit :most;

-- name: alarms(text, number, newest, most)
-- Alarms by their id, and those of the newest open ones that are about what has this number or name.
with found as materialized (
    select id from alarm where id = :number::bigint
     union
    select id
      from (select id, subject
              from alarm
             where settled_at is null
             order by raised_at desc, id desc
             limit :newest::integer) one
     where :text = any(string_to_array(subject, ' '))
)
select coalesce(a.merchant_id, 0) as merchant_id, coalesce(m.name, '') as merchant_name, coalesce(a.live, true) as live,
       a.id, a.kind, a.subject, a.raised_at, a.settled_at
  from found f
  join alarm a on a.id = f.id
  left join merchant m on m.id = a.merchant_id
 order by a.id desc
 limit :most;

-- name: has_id(number)$
-- Whether anything of this id is here, of which the search shows what it is.
select exists (
           select
             from merchant m
            cross join (values (true), (false)) as side (live)
            where exists (select from payment where merchant_id = m.id and live = side.live and id = :number::bigint)
               or exists (select from subscription where merchant_id = m.id and live = side.live and id = :number::bigint)
               or exists (select from checkout where merchant_id = m.id and live = side.live and id = :number::bigint)
               or exists (select from payout where merchant_id = m.id and live = side.live and id = :number::bigint)
               or exists (select from chargeback where merchant_id = m.id and live = side.live and id = :number::bigint)
               or exists (select from pingback where merchant_id = m.id and live = side.live and id = :number::bigint))
    or exists (select from alarm where id = :number::bigint);

-- name: people(prefix, most)
-- People who log in, whose name or address begins so, with the merchants in whose teams they are.
select p.id, p.name, p.email, p.operator, t.merchant_ids, t.merchant_names
  from person p
 cross join lateral (
     select coalesce(array_agg(s.merchant_id order by s.merchant_id), '{}') as merchant_ids,
            coalesce(array_agg(m.name order by s.merchant_id), '{}') as merchant_names
       from (select merchant_id from membership where person_id = p.id order by merchant_id limit :most::integer) s
       join merchant m on m.id = s.merchant_id
 ) t
 where p.id = any(array(
     (select id from person where lower(name) like lower(:prefix) order by lower(name), id limit :most::integer)
      union
     (select id from person where lower(email) like lower(:prefix) order by lower(email), id limit :most::integer)))
 order by p.name, p.id
 limit :most;
