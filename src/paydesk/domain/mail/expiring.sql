-- name: expiring(first_days, real_now)
-- The subscriptions whose cards expire soon.
select e.merchant_id, e.live, e.subscription_id as id
  from card_expiry e
  join merchant m on m.id = e.merchant_id
 where e.expires_at <= :real_now::timestamptz + side_clock(e.live, m.test_clock) + make_interval(days => :first_days)
 order by e.merchant_id, e.subscription_id;

-- name: tell_expiring(real_now, keep_test, first_days, last_days, most, only, prefix, aside_since)^
-- Customers whose card expires before a charge that is still to come: one mail so many days before, and a last one. Whoever
-- is charged no more, or has a card that has expired meanwhile, hears nothing; with the last mail the card is not looked at
-- any more. Each side has its own time. One index probe finds each next side. What could not be told lately is left out;
-- with :only just these subscriptions are told of.
with recursive side as (
    (select merchant_id, live
       from card_expiry
      order by merchant_id, live
      limit 1)
     union all
    (select next.merchant_id, next.live
       from side
      cross join lateral (
          select e.merchant_id, e.live
            from card_expiry e
           where (e.merchant_id, e.live) > (side.merchant_id, side.live)
           order by e.merchant_id, e.live
           limit 1
      ) next)
), timed as (
    select side.merchant_id, side.live, m.email as merchant_email,
           m.customer_mails and (side.live or :keep_test or m.test_mails) as wanted,
           :real_now::timestamptz + side_clock(side.live, m.test_clock) as shop_now
      from side
      join merchant m on m.id = side.merchant_id
     where coalesce(side.merchant_id <> all (array(select merchant_id from merchant_fence)), true)
), due as materialized (
    select e.*, timed.merchant_email, timed.wanted, timed.shop_now,
           e.expires_at <= timed.shop_now + make_interval(days => :last_days) as is_last
      from timed
     cross join lateral (
         select *
           from card_expiry
          where merchant_id = timed.merchant_id and live = timed.live
            and expires_at <= timed.shop_now + make_interval(days => :first_days)
            and (told_days is null or expires_at <= timed.shop_now + make_interval(days => :last_days))
            and (:only::bigint[] is null or subscription_id = any(:only))
            and not is_set_aside(merchant_id, live, :prefix || subscription_id::text, :aside_since)
          order by expires_at
          limit :most
            for update skip locked
     ) e
     limit :most
), over as (
    delete from card_expiry e
     using due
     where e.merchant_id = due.merchant_id and e.subscription_id = due.subscription_id and due.is_last
), noted as (
    update card_expiry e
       set told_days = :first_days
      from due
     where e.merchant_id = due.merchant_id and e.subscription_id = due.subscription_id and not due.is_last
), told as (
    insert into mail (merchant_id, live, kind, recipient, language, facts, once, due_at, created_at)
    select s.merchant_id, s.live, 'card_expires',
           case when s.live or :keep_test then u.email else due.merchant_email end, u.language,
           jsonb_build_object(
               'package', coalesce(v.list_name, v.name), 'brand', d.brand, 'last4', d.last4,
               'expires', to_char(make_date(d.exp_year, d.exp_month, 1), 'YYYY-MM-DD'),
               'date_next', coalesce(s.date_next, g.due_at), 'merchant_order_id', s.init_merchant_order_id,
               'portal_token', case when s.portal_seed is null then s.portal_token end,
               'portal', jsonb_build_object('id', s.id, 'seed', s.portal_seed),
               'name', concat_ws(' ', nullif(u.first_name, ''), nullif(u.last_name, ''))),
           'card_expires ' || s.id || ' ' || d.id || ' ' || case when due.is_last then :last_days else :first_days end,
           :real_now, :real_now
      from due
     cross join lateral (
         select * from subscription where merchant_id = due.merchant_id and id = due.subscription_id limit 1
     ) s
     cross join lateral (
         select * from customer where merchant_id = s.merchant_id and live = s.live and id = s.customer_id limit 1
     ) u
     cross join lateral (
         select * from card where merchant_id = s.merchant_id and live = s.live and id = due.card_id limit 1
     ) d
      join package_version v
        on v.merchant_id = s.merchant_id and v.live = s.live and v.id = s.package_version_id
      left join lateral (
         select due_at
           from subscription_change
          where merchant_id = s.merchant_id and live = s.live and id = s.change_id and type <> 'cancel'
          limit 1
     ) g on true
     where due.wanted and due.expires_at > due.shop_now and s.card_id = due.card_id and s.state in ('Trial', 'Active')
       and (s.date_next is not null or s.charging_attempt_id is not null or g.due_at is not null)
       and u.erased_at is null and u.email <> ''
        on conflict (merchant_id, once) do nothing
 returning id
)
select (select count(*) from due) as seen, (select count(*) from told) as mails;
