-- name: to_be_asked(real_now, usual_days)
-- The trials whose customers are to be asked for a card, as in ask_for_cards.
select c.merchant_id, c.live, c.subscription_id as id
  from subscription_change c
  join merchant m on m.id = c.merchant_id
 where c.state = 'open' and c.asked_by = 'no_card' and c.notice_at is null
   and greatest(c.due_at - make_interval(days => coalesce(m.charge_notice_days, :usual_days)),
                c.since + (c.due_at - c.since) / 2)
       <= :real_now::timestamptz + side_clock(c.live, m.test_clock)
 order by c.merchant_id, c.subscription_id;

-- name: ask_for_cards(real_now, keep_test, usual_days, most, only, prefix, aside_since)^
-- Customers whose trial began without a card and ends soon: one mail so many days before, or in the middle of a trial that
-- is shorter than twice that, in the statement that notes it. Each side has its own time, and one index probe finds each
-- next one that has such trials. Who has a card by now, or wants the end, is not asked, nor who is paused. What was due
-- while mails were not wanted is not told later. What could not be told lately is left out; with :only just these are.
with recursive side as (
    (select merchant_id, live
       from subscription_change
      where state = 'open' and asked_by = 'no_card' and notice_at is null
      order by merchant_id, live
      limit 1)
     union all
    (select next.merchant_id, next.live
       from side
      cross join lateral (
          select c.merchant_id, c.live
            from subscription_change c
           where c.state = 'open' and c.asked_by = 'no_card' and c.notice_at is null
             and (c.merchant_id, c.live) > (side.merchant_id, side.live)
           order by c.merchant_id, c.live
           limit 1
      ) next)
), timed as (
    select side.*, m.email as merchant_email, m.customer_mails and (side.live or :keep_test or m.test_mails) as wanted,
           :real_now::timestamptz + side_clock(side.live, m.test_clock) as shop_now,
           make_interval(days => coalesce(m.charge_notice_days, :usual_days)) as ahead
      from side
      join merchant m on m.id = side.merchant_id
     where coalesce(side.merchant_id <> all (array(select merchant_id from merchant_fence)), true)
), due as materialized (
    select e.*, timed.merchant_email, timed.wanted
      from timed
     cross join lateral (
         select c.merchant_id, c.live, c.id as change_id, c.subscription_id as id, c.due_at
           from subscription_change c
          where c.merchant_id = timed.merchant_id and c.live = timed.live
            and c.state = 'open' and c.asked_by = 'no_card' and c.notice_at is null
            and c.due_at > timed.shop_now and c.due_at <= timed.shop_now + timed.ahead
            and c.since + (c.due_at - c.since) / 2 <= timed.shop_now
            and (:only::bigint[] is null or c.subscription_id = any(:only))
            and not is_set_aside(c.merchant_id, c.live, :prefix || c.subscription_id::text, :aside_since)
          order by c.due_at
          limit :most
            for update skip locked
     ) e
     limit :most
), noted as (
    update subscription_change c
       set notice_at = :real_now
      from due
     where c.merchant_id = due.merchant_id and c.id = due.change_id
), told as (
    insert into mail (merchant_id, live, kind, recipient, language, facts, once, due_at, created_at)
    select s.merchant_id, s.live, 'card_wanted',
           case when s.live or :keep_test then u.email else due.merchant_email end, u.language,
           jsonb_build_object(
               'package', t.package_name, 'currency', t.currency, 'amount', trim_scale(t.price)::text,
               'ends_at', due.due_at, 'terms_agreed', s.terms_agreed, 'merchant_order_id', s.init_merchant_order_id,
               'portal', jsonb_build_object('id', s.id, 'seed', s.portal_seed),
               'name', concat_ws(' ', nullif(u.first_name, ''), nullif(u.last_name, ''))),
           'card_wanted ' || due.change_id, :real_now, :real_now
      from due
     cross join lateral (
         select * from subscription where merchant_id = due.merchant_id and id = due.id limit 1
     ) s
     cross join lateral (
         select * from customer where merchant_id = s.merchant_id and live = s.live and id = s.customer_id limit 1
     ) u
      join package_terms t
        on t.merchant_id = s.merchant_id and t.live = s.live and t.package_version_id = s.package_version_id
     where due.wanted and u.erased_at is null and u.email <> ''
        on conflict (merchant_id, once) do nothing
 returning id
)
select (select count(*) from due) as seen, (select count(*) from told) as mails;
