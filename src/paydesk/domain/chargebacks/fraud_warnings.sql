-- name: warned_payments(keys, tags, untold, acquirer)
-- The payments that warnings are of, each with the place of its warning, whether an alarm on it is open (null if there
-- never was one), and whether it is over. Each is found through its merchant, whose tag it tells; each merchant is asked
-- for the keys that tell none (untold), if there are any. Of who has gone to another cell what is here is what was: they
-- are told of there.
with told as (
    select * from unnest(:keys::text[], :tags::text[]) with ordinality as t (key, tag, place)
), found as materialized (
    select t.place, m.id as merchant_id, a.live, a.payment_id
      from told t
     cross join lateral (select id from merchant where key_tag = t.tag offset 0) m
      join payment_attempt a on a.merchant_id = m.id and a.idempotency_key = t.key and a.acquirer = :acquirer
     where t.tag <> ''
     union all
    select t.place, x.merchant_id, x.live, x.payment_id
      from (select a.merchant_id, a.live, a.payment_id, a.idempotency_key
              from merchant m
              join payment_attempt a
                on a.merchant_id = m.id and a.idempotency_key = any(:untold::text[]) and a.acquirer = :acquirer
             where cardinality(:untold::text[]) > 0) x
      join told t on t.key = x.idempotency_key and t.tag = ''
)
select f.merchant_id, f.live, f.payment_id, f.place::integer, k.is_open,
       p.state in ('voided', 'refunded', 'charged_back') as is_over
  from found f
  join payment p on p.merchant_id = f.merchant_id and p.live = f.live and p.id = f.payment_id
 cross join lateral (select bool_or(settled_at is null) as is_open
                       from alarm
                      where merchant_id = f.merchant_id and live = f.live and kind = 'fraud_warned'
                        and subject = 'payment ' || f.payment_id) k
 where f.merchant_id <> all (array(select merchant_id from merchant_fence where moved_at is not null))
 order by f.place;

-- name: settle_averted(merchant_ids, lives, subjects, by, now)!
-- The open alarms of these payments, and of those that were given back, let go or charged back by our own books, however
-- long ago they were warned of. In the order in which alarms are raised: none who writes them locks out another.
with standing as materialized (
    select merchant_id, live, id, subject
      from alarm
     where kind = 'fraud_warned' and settled_at is null
       and merchant_id <> all (array(select merchant_id from merchant_fence))
), over as (
    select a.merchant_id, a.live, a.id
      from standing s
      join alarm a on a.merchant_id = s.merchant_id and a.live = s.live and a.id = s.id
     where exists (select
                     from unnest(:merchant_ids::bigint[], :lives::boolean[], :subjects::text[])
                       as t (merchant_id, live, subject)
                    where t.merchant_id = s.merchant_id and t.live = s.live and t.subject = s.subject)
        or exists (select
                     from payment p
                    where p.merchant_id = s.merchant_id and p.live = s.live
                      and p.id = substr(s.subject, length('payment ') + 1)::bigint
                      and p.state in ('voided', 'refunded', 'charged_back'))
     order by a.merchant_id, a.live, a.subject
       for update of a
)
update alarm a
   set settled_at = :now, settled_by = :by
  from over o
 where a.merchant_id = o.merchant_id and a.live = o.live and a.id = o.id and a.settled_at is null;

-- name: is_warned_of(merchant_id, live, subject, by)$
-- Whether an issuer's warning of a payment stands: also after an operator has looked at it, until it settles itself.
select exists (select
                 from alarm
                where merchant_id = :merchant_id and live = :live and kind = 'fraud_warned' and subject = :subject
                  and settled_by is distinct from :by);
