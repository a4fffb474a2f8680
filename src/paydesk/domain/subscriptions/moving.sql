-- name: find_version_terms(merchant_id, live, id)^
-- A version of a package; none that a coupon has made.
select *
  from package_terms
 where merchant_id = :merchant_id and live = :live and package_version_id = :id and list_price is null;

-- name: preview_move(merchant_id, live, from_version_id, payment_limit, may_be_slow, at, tried_by)
-- How many of those that are on a version, or on it with a coupon, go to another one, and when the first and the last of
-- them do; and how many stay, by reason. One look at all of a shop's subscriptions, so that renewals need no index for it.
-- A charge that was tried for the next period, and counts as no failure (the acquirer refused it), is to be tried by
-- :tried_by at the latest.
select why_it_stays(s.state, s.package_version_id = :from_version_id, s.charging_attempt_id is not null, c.type,
                    s.failures + t.times, s.date_next, :at,
                    :payment_limit::integer > 0 and s.next_period > :payment_limit::integer,
                    coalesce(d.slow, false)) as stays,
       count(*) as subscriptions, min(s.date_next) as first_at, max(s.date_next) as last_at
  from package_version v
  join subscription s on s.merchant_id = v.merchant_id and s.live = v.live and s.package_version_id = v.id
  left join subscription_change c
    on c.merchant_id = s.merchant_id and c.live = s.live and c.id = s.change_id and c.state = 'open'
  left join card d
    on not :may_be_slow::boolean and d.merchant_id = s.merchant_id and d.live = s.live and d.id = s.card_id
 cross join lateral (
     select case when s.date_next > :at and s.date_next <= :tried_by::timestamptz
                     then (select count(*)::integer
                             from payment p
                            where p.merchant_id = s.merchant_id and p.live = s.live and p.subscription_id = s.id
                              and p.period_number = s.next_period)
                     else 0 end as times
 ) t
 where v.merchant_id = :merchant_id and v.live = :live
   and (v.id = :from_version_id or v.list_version_id = :from_version_id)
 group by 1;

-- name: begin_move(merchant_id, live, from_version_id, to_version_id, subscriptions, now)^
-- Wishes a move; the one that is under way from that version, if there is one. Nothing is planned yet.
with fresh as (
    insert into package_move (merchant_id, live, from_version_id, to_version_id, subscriptions, until_id, created_at)
    select :merchant_id, :live, :from_version_id, :to_version_id, :subscriptions, coalesce(max(s.id), 0), :now
      from subscription s
     where s.merchant_id = :merchant_id and s.live = :live
        on conflict (merchant_id, live, from_version_id) where state = 'moving' do nothing
 returning id, to_version_id, true as fresh
)
select * from fresh
 union all
select id, to_version_id, false
  from package_move
 where merchant_id = :merchant_id and live = :live and from_version_id = :from_version_id and state = 'moving'
   and not exists (select from fresh);

-- name: moves_under_way(real_now, merchant_id, id)
-- The moves that are not over, each with its side's time; with a merchant and an id just that one.
select m.merchant_id, m.live, m.id, m.state, m.from_version_id, m.to_version_id, m.until_id, m.after_id,
       m.taken_back_after, :real_now::timestamptz + side_clock(m.live, a.test_clock) as shop_now
  from package_move m
  join merchant a on a.id = m.merchant_id
 where m.state in ('moving', 'taking_back') and coalesce(m.merchant_id <> all (array(select merchant_id from merchant_fence)), true)
   and (:id::bigint is null or m.merchant_id = :merchant_id::bigint and m.id = :id::bigint)
 order by m.merchant_id, m.id;

-- name: end_of_batch(merchant_id, after, until, most)$
-- The last of the next so many subscriptions of a shop, whatever they are on; null if there are fewer.
select id
  from subscription
 where merchant_id = :merchant_id and id > :after and id <= :until
 order by id
offset :most - 1
 limit 1;

-- name: to_move(merchant_id, live, from_version_id, payment_limit, may_be_slow, at, tried_by, after, until)
-- Of a range of subscriptions those that go to another version, by the same rule as the preview. Each is found by its id,
-- however many there are: the planner, which takes the range for many, would read whole tables.
with batch as materialized (
    select s.*
      from subscription s
     where s.merchant_id = :merchant_id and s.id > :after and s.id <= :until
), going as materialized (
    select s.merchant_id, s.live, s.id
      from batch s
      left join lateral (
          select type
            from subscription_change
           where merchant_id = s.merchant_id and id = s.change_id and state = 'open'
           limit 1
      ) c on true
      left join lateral (
          select slow from card where not :may_be_slow::boolean and merchant_id = s.merchant_id and id = s.card_id limit 1
      ) d on true
     cross join lateral (
         select case when s.date_next > :at and s.date_next <= :tried_by::timestamptz
                         then (select count(*)::integer
                                 from payment p
                                where p.merchant_id = s.merchant_id and p.live = s.live and p.subscription_id = s.id
                                  and p.period_number = s.next_period)
                         else 0 end as times
     ) t
     where s.live = :live and s.package_version_id = :from_version_id
       and why_it_stays(s.state, s.package_version_id = :from_version_id, s.charging_attempt_id is not null, c.type,
                        s.failures + t.times, s.date_next, :at,
                        :payment_limit::integer > 0 and s.next_period > :payment_limit::integer,
                        coalesce(d.slow, false)) is null
)
select w.*
  from going g
 cross join lateral (
     select * from subscription_planned where merchant_id = g.merchant_id and live = g.live and id = g.id limit 1
 ) w
 order by w.id;

-- name: plan_batch(merchant_id, live, id, after, until, subscriptions, now, real_now)$
-- Plans the change of each subscription given, if nobody else wrote one first and none is being charged; how many. From
-- the first that somebody was faster with nothing is planned, and the next batch begins there. Of two workers with the
-- same batch the slower plans nothing. The batch and how far the move is stand or fall together.
with held as materialized (
    select *
      from package_move
     where merchant_id = :merchant_id and live = :live and id = :id and state = 'moving' and after_id = :after
       for update skip locked
), fresh as materialized (
    select * from jsonb_to_recordset(:subscriptions::jsonb) as f (id bigint, revision integer, due_at timestamptz)
), free as materialized (
    select s.id
      from held
     cross join fresh f
      join subscription s on s.merchant_id = held.merchant_id and s.live = held.live and s.id = f.id
     where s.revision = f.revision - 1 and s.package_version_id = held.from_version_id
       and s.state in ('Trial', 'Active') and s.charging_attempt_id is null and s.change_id is null
     order by s.id
       for update of s
), seen as materialized (
    select coalesce(min(f.id) - 1, :until::bigint) as until
      from fresh f
     where not exists (select from free where free.id = f.id)
), named as materialized (
    select f.*, nextval('subscription_change_id_seq') as change_id
      from free
      join fresh f on f.id = free.id
      join seen on free.id <= seen.until
), planned as (
    update subscription s
       set date_next = null, date_end = null, change_id = named.change_id, revision = named.revision
      from held
     cross join named
     where s.merchant_id = held.merchant_id and s.live = held.live and s.id = named.id
 returning s.merchant_id, s.live, s.id, s.change_id, named.due_at, held.to_version_id
), opened as (
    insert into subscription_change (merchant_id, live, id, subscription_id, type, due_at, asked_by, since,
                                     package_version_id, created_at, move_id)
    select p.merchant_id, p.live, p.change_id, p.id, 'change', p.due_at, 'merchant', :now, p.to_version_id, :now, :id
      from planned p
), noted as (
    update package_move m
       set after_id = seen.until, planned = m.planned + (select count(*) from planned),
           state = case when seen.until >= m.until_id then 'moved' else m.state end,
           finished_at = case when seen.until >= m.until_id then :real_now::timestamptz end
      from held
     cross join seen
     where m.merchant_id = held.merchant_id and m.id = held.id
)
select count(*) from planned;

-- name: begin_taking_back(merchant_id, live, id)$
-- What a move has planned and is still to come shall not come; what it has not planned yet neither.
update package_move
   set state = 'taking_back', finished_at = null
 where merchant_id = :merchant_id and live = :live and id = :id and state in ('moving', 'moved')
returning id;

-- name: to_take_back(merchant_id, live, id, after, at, most)
-- The next so many subscriptions whose change a move has planned, and which is still to come.
select w.*
  from (
      select merchant_id, live, subscription_id
        from subscription_change
       where merchant_id = :merchant_id and live = :live and move_id = :id and state = 'open' and due_at > :at
         and subscription_id > :after
       order by subscription_id
       limit :most
  ) c
 cross join lateral (
     select * from subscription_planned where merchant_id = c.merchant_id and live = c.live and id = c.subscription_id
      limit 1
 ) w
 order by w.id;

-- name: take_back_batch(merchant_id, live, id, after, until, last, subscriptions, now, real_now)$
-- Has each subscription given go on as it was, if nobody else wrote first; how many. As with plan_batch.
with held as materialized (
    select *
      from package_move
     where merchant_id = :merchant_id and live = :live and id = :id and state = 'taking_back'
       and taken_back_after = :after
       for update skip locked
), fresh as materialized (
    select * from jsonb_to_recordset(:subscriptions::jsonb) as f (id bigint, revision integer, date_next timestamptz)
), free as materialized (
    select s.id, s.change_id
      from held
     cross join fresh f
      join subscription s on s.merchant_id = held.merchant_id and s.live = held.live and s.id = f.id
     where s.revision = f.revision - 1 and s.state in ('Trial', 'Active') and s.charging_attempt_id is null
       and exists (select
                     from subscription_change c
                    where c.merchant_id = s.merchant_id and c.live = s.live and c.id = s.change_id
                      and c.state = 'open' and c.move_id = held.id)
     order by s.id
       for update of s
), seen as materialized (
    select min(f.id) - 1 as until from fresh f where not exists (select from free where free.id = f.id)
), kept as (
    update subscription s
       set date_next = f.date_next, change_id = null, revision = f.revision
      from held
     cross join free
     cross join seen
      join fresh f on f.id = free.id
     where s.merchant_id = held.merchant_id and s.live = held.live and s.id = free.id
       and (seen.until is null or free.id <= seen.until)
 returning s.merchant_id, s.live, free.change_id
), closed as (
    update subscription_change c
       set state = 'undone', finished_at = :now
      from kept
     where c.merchant_id = kept.merchant_id and c.live = kept.live and c.id = kept.change_id
), noted as (
    update package_move m
       set taken_back_after = coalesce(seen.until, :until::bigint),
           state = case when :last::boolean and seen.until is null then 'taken_back' else m.state end,
           finished_at = case when :last::boolean and seen.until is null then :real_now::timestamptz end
      from held
     cross join seen
     where m.merchant_id = held.merchant_id and m.id = held.id
)
select count(*) from kept;

-- name: list_moves(merchant_id, live, package_id, id, most)
-- The moves from a package's versions, newest first, with what became of what they planned; or the one of an id.
select m.id, m.from_version_id, m.to_version_id, m.state, m.subscriptions, m.planned, m.created_at, m.finished_at,
       v.package_id, coalesce(c.waiting, 0) as waiting, coalesce(c.done, 0) as done
  from package_move m
  join package_version v on v.merchant_id = m.merchant_id and v.live = m.live and v.id = m.from_version_id
  left join lateral (
      select count(*) filter (where state = 'open') as waiting, count(*) filter (where state = 'done') as done
        from subscription_change
       where merchant_id = m.merchant_id and live = m.live and move_id = m.id
  ) c on true
 where m.merchant_id = :merchant_id and m.live = :live
   and (:package_id::bigint is null or v.package_id = :package_id) and (:id::bigint is null or m.id = :id)
 order by m.id desc
 limit :most;
