-- name: of_id(merchant_id, live, id, state)^
-- The subscription that an id names, if it is of a state (null: any).
select *
  from subscription_planned
 where merchant_id = :merchant_id and live = :live and id = :id and (:state::text is null or state = :state);

-- name: failing(merchant_id, live, since, until, before_at, before_id, most)
-- Running subscriptions whose last charge failed, newest first: the few that an index of their own keeps.
select w.*
  from (
      select merchant_id, live, id
        from subscription
       where merchant_id = :merchant_id and live = :live and failures > 0 and state in ('Trial', 'Active')
         and created_at >= :since and created_at < :until and (created_at, id) < (:before_at, :before_id)
       order by created_at desc, id desc
       limit :most
  ) page
  join subscription_planned w on w.merchant_id = page.merchant_id and w.live = page.live and w.id = page.id
 order by w.created_at desc, w.id desc;

-- name: cards_of(merchant_id, live, ids)
-- What may be shown of the cards that some subscriptions are charged to.
select s.id, c.brand, c.last4
  from subscription s
  join card c on c.merchant_id = s.merchant_id and c.live = s.live and c.id = s.card_id
 where s.merchant_id = :merchant_id and s.live = :live and s.id = any(:ids::bigint[]);

-- name: in_each_state(merchant_id, live, states, most)
-- How many subscriptions are in states that are not the usual one, each counted no further than :most by the index by
-- state; the word failing stands for the running ones whose last charge failed.
select asked.state, count(one.id) as number
  from unnest(:states::text[]) as asked (state)
  left join lateral (
      (select id
         from subscription
        where merchant_id = :merchant_id and live = :live and state = asked.state and state <> 'Active'
        limit :most)
       union all
      (select id
         from subscription
        where merchant_id = :merchant_id and live = :live and failures > 0 and state in ('Trial', 'Active')
          and asked.state = 'failing'
        limit :most)
  ) one on true
 group by asked.state;

-- name: find_subscription(merchant_id, live, id)^
-- A subscription with its card and its customer's name.
select w.*, d.brand, d.last4, d.exp_month, d.exp_year, d.holder, u.first_name, u.last_name, u.country,
       case when a.state = 'pending' then a.sure_by end as sure_by
  from subscription_planned w
  left join payment_attempt a on a.merchant_id = w.merchant_id and a.live = w.live and a.id = w.charging_attempt_id
  join card d on d.merchant_id = w.merchant_id and d.live = w.live and d.id = w.card_id
  join customer u on u.merchant_id = w.merchant_id and u.live = w.live and u.id = w.customer_id
 where w.merchant_id = :merchant_id and w.live = :live and w.id = :id;

-- name: list_differences(merchant_id, live, subscription_id, most)
-- What was charged at once for other plans, newest first: each try that its order's payment stands for.
select p.id, p.state, p.amount, p.currency, d.at, v.name as plan
  from subscription_difference d
  join payment_attempt a on a.merchant_id = d.merchant_id and a.live = d.live and a.id = d.attempt_id
  join payment p on p.merchant_id = a.merchant_id and p.live = a.live and p.id = a.payment_id and p.attempt_id = a.id
  join package_version v on v.merchant_id = d.merchant_id and v.live = d.live and v.id = d.package_version_id
 where d.merchant_id = :merchant_id and d.live = :live and d.subscription_id = :subscription_id
 order by d.attempt_id desc
 limit :most;

-- name: list_packages(merchant_id, live, before, most)
-- Packages, newest first, each with its newest version; :before is the id to go on below.
select k.created_at, v.versions, t.*
  from subscription_package k
 cross join lateral (
     select max(id) as newest, count(*) as versions
       from package_version
      where merchant_id = k.merchant_id and live = k.live and package_id = k.id and list_version_id is null
 ) v
  join package_terms t on t.merchant_id = k.merchant_id and t.live = k.live and t.package_version_id = v.newest
 where k.merchant_id = :merchant_id and k.live = :live and k.id < :before
 order by k.id desc
 limit :most;

-- name: versions_of(merchant_id, live, package_id, most)
-- The versions of a package, newest first; none that a coupon has made.
select t.*, v.subscriptions_count as taken, v.created_at, v.portal_offered
  from package_version v
  join package_terms t on t.merchant_id = v.merchant_id and t.live = v.live and t.package_version_id = v.id
 where v.merchant_id = :merchant_id and v.live = :live and v.package_id = :package_id and v.list_version_id is null
 order by v.id desc
 limit :most;
