-- name: find(merchant_id, live, now)^
-- How a side is guarded now; what is over is null.
select coalesce(g.limits, '{}') as limits, coalesce(g.always_authenticate, false) as always_authenticate,
       case when g.authenticate_until > :now then g.authenticate_since end as authenticate_since,
       case when g.authenticate_until > :now then g.authenticate_until end as authenticate_until,
       case when g.paused_until > :now then g.paused_until end as paused_until
  from merchant m
  left join card_guard g on g.merchant_id = m.id and g.live = :live
 where m.id = :merchant_id;

-- name: figures(merchant_id, live, windows, now)
-- How tries have gone in each window that ends now, in whole minutes.
select w.span, coalesce(sum(m.tries), 0)::bigint as tries, coalesce(sum(m.declines), 0)::bigint as declines,
       coalesce(sum(m.refused), 0)::bigint as refused
  from unnest(:windows::interval[]) as w (span)
  left join card_guard_minute m
    on m.merchant_id = :merchant_id and m.live = :live and m.minute > :now::timestamptz - w.span
 group by w.span
 order by w.span;

-- name: begin(merchant_id, live)!
-- A row to lock: most sides are never guarded and have none.
insert into card_guard (merchant_id, live)
values (:merchant_id, :live)
    on conflict do nothing;

-- name: lock(merchant_id, live)^
select limits, always_authenticate
  from card_guard
 where merchant_id = :merchant_id and live = :live
   for update;

-- name: save(merchant_id, live, limits, always_authenticate)!
update card_guard
   set limits = :limits::jsonb, always_authenticate = :always_authenticate
 where merchant_id = :merchant_id and live = :live;

-- name: lift_pause(merchant_id, live, now, authenticate_until)^
-- Guarded by the state that it leaves. Declines count anew from the next minute on: those of before would end what was
-- lifted at once. Everybody goes on being asked for 3-D Secure.
update card_guard
   set paused_until = null, authenticate_since = :now, authenticate_until = :authenticate_until
 where merchant_id = :merchant_id and live = :live and paused_until > :now
returning merchant_id;

-- name: forget_test_tries(merchant_id)!
-- Limits of the merchant's own stay.
with tries as (
    delete from card_try
     where merchant_id = :merchant_id and not live
), minutes as (
    delete from card_guard_minute
     where merchant_id = :merchant_id and not live
)
update card_guard
   set authenticate_since = null, authenticate_until = null, paused_until = null
 where merchant_id = :merchant_id and not live;
