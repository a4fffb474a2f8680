-- What the business account's lists search and sort by.

-- Serves the search for the last four digits of a card: its payments at checkouts, and the renewals that followed, which
-- are found through their subscription, so that these indexes cost them nothing.
create index card_by_last4 on card (merchant_id, live, last4, id);
create index payment_by_card on payment (merchant_id, live, card_id) where not renewal;
create index card_change_by_card on card_change (merchant_id, live, card_id);

-- Serves the list of orders that wait to be shipped, soonest first.
create index payment_to_ship on payment (merchant_id, live, ship_by, id) where state = 'authorized';
-- Serves the list of what was shipped, newest first.
create index delivery_by_time on delivery (merchant_id, live, id);

alter table package_version add column subscriptions_count bigint not null default 0;
comment on column package_version.subscriptions_count is 'how many subscriptions were ever taken out on these terms';
update package_version v
   set subscriptions_count = counted.taken
  from (select merchant_id, live, package_version_id, count(*) as taken
          from subscription
         group by merchant_id, live, package_version_id) counted
 where v.merchant_id = counted.merchant_id and v.live = counted.live and v.id = counted.package_version_id;

-- The payments that were made with cards of these last four digits.
create function payments_of_last4(merchant bigint, side boolean, digits text) returns setof bigint
language sql stable as $$
    with found as materialized (
        select id from card where merchant_id = merchant and live = side and last4 = digits
    ), first as (
        select p.id
          from found
          join payment p on p.merchant_id = merchant and p.live = side and p.card_id = found.id
         where not p.renewal
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
