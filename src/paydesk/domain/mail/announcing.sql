-- name: announcing(real_now)
-- The subscriptions whose customers are to be told of a charge.
select s.merchant_id, s.live, s.id
  from merchant m
  join subscription s on s.merchant_id = m.id
 where m.charge_notice_days is not null and s.date_next is not null and s.charging_attempt_id is null
   and s.failures = 0 and (s.state = 'Trial' or s.is_long or s.next_period = s.terms_from)
   and (s.notice_for is null or s.date_next - s.notice_for > interval '1 day')
   and s.date_next <= :real_now::timestamptz + side_clock(s.live, m.test_clock)
                      + make_interval(days => m.charge_notice_days)
 union
select c.merchant_id, c.live, c.subscription_id
  from merchant m
  join subscription_change c on c.merchant_id = m.id
 where m.charge_notice_days is not null and c.state = 'open' and c.type = 'change' and c.notice_at is null
   and c.due_at <= :real_now::timestamptz + side_clock(c.live, m.test_clock)
                   + make_interval(days => m.charge_notice_days)
 order by 1, 3;

-- name: announce_charges(real_now, keep_test, most, only, prefix, aside_since)^
-- Customers whose trial ends soon, whose next charge is by other terms, or is for a year or longer: one mail so many days
-- before as their merchant wants, in the statement that notes it. Each side has its own time. Whoever has no date is told
-- nothing: it is paused, ends, or waits for its customer; nor is who fails to be charged. What was due to be told while
-- mails were not wanted is not told later. What could not be told lately is left out; with :only just these are told of.
with side as (
    select m.id as merchant_id, l.live, m.email as merchant_email,
           m.customer_mails and (l.live or :keep_test or m.test_mails) as wanted,
           :real_now::timestamptz + side_clock(l.live, m.test_clock) as shop_now, m.charge_notice_days as days
      from merchant m
     cross join (values (true), (false)) l (live)
     where m.charge_notice_days is not null and coalesce(m.id <> all (array(select merchant_id from merchant_fence)), true)
), by_date as materialized (
    select e.*, side.merchant_email, side.wanted
      from side
     cross join lateral (
         select s.merchant_id, s.live, s.id, s.package_version_id, s.date_next as charge_at
           from subscription s
          where s.merchant_id = side.merchant_id and s.live = side.live
            and s.date_next is not null and s.charging_attempt_id is null and s.failures = 0
            and (s.state = 'Trial' or s.is_long or s.next_period = s.terms_from)
            and (s.notice_for is null or s.date_next - s.notice_for > interval '1 day')
            and s.date_next > side.shop_now and s.date_next <= side.shop_now + make_interval(days => side.days)
            and (:only::bigint[] is null or s.id = any(:only))
            and not is_set_aside(s.merchant_id, s.live, :prefix || s.id::text, :aside_since)
          order by s.date_next
          limit :most
            for update skip locked
     ) e
     limit :most
), by_change as materialized (
    select e.*, side.merchant_email, side.wanted
      from side
     cross join lateral (
         select c.merchant_id, c.live, c.subscription_id as id, c.package_version_id, c.due_at as charge_at,
                c.id as change_id
           from subscription_change c
          where c.merchant_id = side.merchant_id and c.live = side.live
            and c.state = 'open' and c.type = 'change' and c.notice_at is null
            and c.due_at > side.shop_now and c.due_at <= side.shop_now + make_interval(days => side.days)
            and (:only::bigint[] is null or c.subscription_id = any(:only))
            and not is_set_aside(c.merchant_id, c.live, :prefix || c.subscription_id::text, :aside_since)
          order by c.due_at
          limit :most
            for update skip locked
     ) e
     limit :most
), noted as (
    update subscription s
       set notice_for = by_date.charge_at
      from by_date
     where s.merchant_id = by_date.merchant_id and s.id = by_date.id
), noted_of_change as (
    update subscription_change c
       set notice_at = :real_now
      from by_change
     where c.merchant_id = by_change.merchant_id and c.id = by_change.change_id
), due as (
    select merchant_id, live, id, package_version_id, charge_at, merchant_email, wanted from by_date
     union all
    select merchant_id, live, id, package_version_id, charge_at, merchant_email, wanted from by_change
), told as (
    insert into mail (merchant_id, live, kind, recipient, language, facts, once, due_at, created_at)
    select s.merchant_id, s.live, 'charge_ahead',
           case when s.live or :keep_test then u.email else due.merchant_email end, u.language,
           jsonb_build_object(
               'package', t.package_name, 'currency', t.currency, 'date_next', due.charge_at,
               'amount', renewal_charge(t.price, s.balance, t.currency, s.charge_digits, s.least_charge, s.live),
               'brand', d.brand, 'last4', d.last4, 'merchant_order_id', s.init_merchant_order_id,
               'portal_token', case when s.portal_seed is null then s.portal_token end,
               'portal', jsonb_build_object('id', s.id, 'seed', s.portal_seed),
               'name', concat_ws(' ', nullif(u.first_name, ''), nullif(u.last_name, ''))),
           'charge_ahead ' || s.id || ' ' || due.package_version_id || ' '
               || to_char(due.charge_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI'),
           :real_now, :real_now
      from due
     cross join lateral (
         select * from subscription where merchant_id = due.merchant_id and id = due.id limit 1
     ) s
     cross join lateral (
         select * from customer where merchant_id = s.merchant_id and live = s.live and id = s.customer_id limit 1
     ) u
     cross join lateral (
         select * from card where merchant_id = s.merchant_id and live = s.live and id = s.card_id limit 1
     ) d
      join package_terms t
        on t.merchant_id = s.merchant_id and t.live = s.live and t.package_version_id = due.package_version_id
     where due.wanted and u.erased_at is null and u.email <> ''
        on conflict (merchant_id, once) do nothing
 returning id
)
select (select count(*) from due) as seen, (select count(*) from told) as mails;
