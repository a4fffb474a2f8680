-- name: settle(real_now, at, merchant_id, most, only)
-- Money whose time has come moves on, each by its side's own time: first a payment's net from pending to available, then
-- what is left of its reserve. The row says which is next and when; several workers never take the same one. Under a
-- test clock that is being moved the posting has the very moment at which it was due. Each part is looked for by itself,
-- as the index has them.
with due as materialized (
    select p.merchant_id, p.live, p.id, p.later_at,
           case when :merchant_id::bigint is null then p.shop_now else p.funds_due_at end as moment
      from merchant m
     cross join (values (true), (false)) side (live)
     cross join lateral (
         select coalesce(:at::timestamptz, :real_now::timestamptz + side_clock(side.live, m.test_clock)) as now
     ) shop
     cross join (values (0::smallint), (1::smallint)) next (part)
     cross join lateral (
         select merchant_id, live, id, funds_due_at, shop.now as shop_now,
                case when settled_at is null and reserve > reserve_taken
                     then captured_at + make_interval(days => m.reserve_days)
                end as later_at
           from payment
          where merchant_id = m.id and live = side.live and money_part(settled_at) = next.part
            and funds_look_at <= shop.now and funds_due_at <= shop.now
            and (:only::bigint[] is null or id = any(:only))
          order by funds_look_at
          limit :most
            for update skip locked
     ) p
     where (:merchant_id::bigint is null or (m.id = :merchant_id and not side.live))
       and coalesce(m.id <> all (array(select merchant_id from merchant_fence)), true)
     limit :most
), moved as (
    update payment p
       set revision = p.revision + 1,
           settled_at = coalesce(p.settled_at, due.moment),
           reserve_released_at = case when p.settled_at is not null then due.moment end,
           funds_due_at = due.later_at, funds_look_at = due.later_at
      from due
     where p.merchant_id = due.merchant_id and p.live = due.live and p.id = due.id
 returning p.*, due.moment
), posting as materialized (
    select moved.*, nextval('ledger_posting_id_seq') as posting_id,
           case when reserve_released_at is null then 'settlement' else 'reserve_release' end as kind,
           case when reserve_released_at is null then net - pending_taken else reserve - reserve_taken end as ready
      from moved
), posted as (
    insert into ledger_posting (merchant_id, live, posting_id, kind, payment_id, currency, pending, reserve, available, at)
    select merchant_id, live, posting_id, kind, id, currency, case kind when 'settlement' then ready else 0 end,
           case kind when 'settlement' then 0 else ready end, -ready, posted_at(merchant_id, live, moment)
      from posting
     where ready <> 0
)
select merchant_id, live, id as payment_id, kind, currency, ready as amount from posting;

-- name: due_to_settle(real_now, at, merchant_id, most)
-- The payments that settle would move on.
select p.merchant_id, p.live, p.id
  from merchant m
 cross join (values (true), (false)) side (live)
 cross join lateral (
     select coalesce(:at::timestamptz, :real_now::timestamptz + side_clock(side.live, m.test_clock)) as now
 ) shop
 cross join (values (0::smallint), (1::smallint)) next (part)
 cross join lateral (
     select merchant_id, live, id
       from payment
      where merchant_id = m.id and live = side.live and money_part(settled_at) = next.part
        and funds_look_at <= shop.now and funds_due_at <= shop.now
      order by funds_look_at
      limit :most
 ) p
 where :merchant_id::bigint is null or (m.id = :merchant_id and not side.live)
 limit :most;

-- name: postpone(merchant_ids, lives, ids, real_now, pause)!
-- What could not be settled is tried again later, by its side's own time.
update payment p
   set funds_due_at = greatest(p.funds_due_at, r.now) + :pause::interval,
       funds_look_at = greatest(p.funds_due_at, r.now) + :pause::interval
  from (select r.merchant_id, r.live, r.id, :real_now::timestamptz + side_clock(r.live, m.test_clock) as now
          from unnest(:merchant_ids::bigint[], :lives::boolean[], :ids::bigint[]) as r (merchant_id, live, id)
          join merchant m on m.id = r.merchant_id) r
 where p.merchant_id = r.merchant_id and p.live = r.live and p.id = r.id and p.funds_due_at is not null;
