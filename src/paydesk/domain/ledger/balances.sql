-- name: balances(merchant_id, live)
-- What is owed to the merchant in each currency.
select currency,
       coalesce(-sum(amount) filter (where account = 'pending'), 0) as pending,
       coalesce(-sum(amount) filter (where account = 'available'), 0) as available,
       coalesce(-sum(amount) filter (where account = 'reserve'), 0) as reserve
  from balance_parts(:merchant_id, :live)
 group by currency
 order by currency;

-- name: reserve_calendar(merchant_id, live)
-- On which day of the merchant's calendar how much of the reserve is released: of what has settled the sums and what is
-- not folded into them, and of what has not the payments, by the terms of now.
select (h.due_at at time zone m.by_zone)::date as day, h.currency, sum(h.amount) as amount
  from (select id, reserve_days, known_zone(time_zone) as by_zone from merchant where id = :merchant_id offset 0) m
 cross join lateral (
     select due_at, currency, amount
       from reserve_due
      where merchant_id = :merchant_id and live = :live and amount <> 0
      union all
     select due_at, currency, amount
       from reserve_change
      where merchant_id = :merchant_id and live = :live
      union all
     select captured_at + make_interval(days => m.reserve_days), currency, reserve - reserve_taken
       from payment
      where merchant_id = :merchant_id and live = :live and money_part(settled_at) = 0::smallint
        and funds_look_at is not null and funds_due_at is not null
        and reserve > reserve_taken
 ) h
 group by 1, 2
having sum(h.amount) <> 0
 order by 1, 2;

-- name: postings(merchant_id, live, since, until, before_at, before_id, most)
-- A page of the statement, newest first: each posting with what it changed of the merchant's balances.
select at, id, kind, payment_id, payout_id, currency, gross, fees, pending, available, reserve
  from (
      (select p.at, p.posting_id as id, p.kind, p.payment_id, p.payout_id, p.currency, p.acquirer + p.bank as gross,
              p.fees, -p.pending as pending, -p.available as available, -p.reserve as reserve
         from ledger_posting p
        where p.merchant_id = :merchant_id and p.live = :live and p.at >= :since and p.at < :until
          and (p.at, p.posting_id) < (:before_at, :before_id)
        order by p.at desc, p.posting_id desc
        limit :most)
       union all
      (select e.at, e.posting_id, min(e.kind), min(e.payment_id), min(e.payout_id), min(e.currency),
              coalesce(sum(e.amount) filter (where e.account in ('acquirer', 'bank')), 0),
              coalesce(sum(e.amount) filter (where e.account = 'fees'), 0),
              coalesce(-sum(e.amount) filter (where e.account = 'pending'), 0),
              coalesce(-sum(e.amount) filter (where e.account = 'available'), 0),
              coalesce(-sum(e.amount) filter (where e.account = 'reserve'), 0)
         from ledger_entry_before e
        where e.merchant_id = :merchant_id and e.live = :live and e.at >= :since and e.at < :until
          and (e.at, e.posting_id) < (:before_at, :before_id)
        group by e.at, e.posting_id
        order by e.at desc, e.posting_id desc
        limit :most)
  ) line
 order by at desc, id desc
 limit :most;

-- name: names_on_lines(merchant_id, live, payment_ids, payout_ids)
-- What the lines of a statement are about, by name: the orders with their customers, and the transfers.
select p.id as payment_id, null::bigint as payout_id, p.merchant_order_id as reference,
       coalesce(trim(c.first_name || ' ' || c.last_name), '') as customer
  from payment p
  left join customer c on c.merchant_id = p.merchant_id and c.live = p.live and c.id = p.customer_id
 where p.merchant_id = :merchant_id and p.live = :live and p.id = any(:payment_ids::bigint[])
 union all
select null, id, reference, ''
  from payout
 where merchant_id = :merchant_id and live = :live and id = any(:payout_ids::bigint[]);

-- name: payouts_wait_until(merchant_id)$
-- Until when payouts to a new bank account wait.
select payouts_from from business_profile where merchant_id = :merchant_id;

-- name: still_posting(until)$
-- Whether an entry may still appear that belongs before a moment which is over: who posts has a lock on the table (code of
-- before on the view) from the beginning of its statement, and no posting is dated before that; a second is for what has
-- begun and has no lock yet.
select :until::timestamptz <= clock_timestamp()
   and (clock_timestamp() < :until::timestamptz + interval '1 second'
        or exists (select
                     from pg_locks l
                     left join pg_stat_activity a on a.pid = l.pid
                    where l.relation in ('ledger_posting'::regclass, 'ledger_entry'::regclass)
                      and l.mode = 'RowExclusiveLock'
                      and l.database = (select oid from pg_database where datname = current_database())
                      and coalesce(a.xact_start <= :until::timestamptz, true)));

-- name: newest_posting()$
-- No posting that is made from now on has this id or a lower one.
select last_value - (not is_called)::integer from ledger_posting_id_seq;

-- name: statement(merchant_id, live, since, until, newest_id, after_at, after_id, most)
-- The same oldest first, a page of a whole period: a posting's entries have one time, so no page parts them.
select at, id, kind, payment_id, payout_id, currency, gross, fees, pending, available, reserve
  from (
      (select p.at, p.posting_id as id, p.kind, p.payment_id, p.payout_id, p.currency, p.acquirer + p.bank as gross,
              p.fees, -p.pending as pending, -p.available as available, -p.reserve as reserve
         from ledger_posting p
        where p.merchant_id = :merchant_id and p.live = :live
          and p.at >= greatest(:since::timestamptz, :after_at::timestamptz) and p.at < :until
          and (p.at, p.posting_id) > (:after_at, :after_id) and p.posting_id <= :newest_id
        order by p.at, p.posting_id
        limit :most)
       union all
      (select e.at, e.posting_id, min(e.kind), min(e.payment_id), min(e.payout_id), min(e.currency),
              coalesce(sum(e.amount) filter (where e.account in ('acquirer', 'bank')), 0),
              coalesce(sum(e.amount) filter (where e.account = 'fees'), 0),
              coalesce(-sum(e.amount) filter (where e.account = 'pending'), 0),
              coalesce(-sum(e.amount) filter (where e.account = 'available'), 0),
              coalesce(-sum(e.amount) filter (where e.account = 'reserve'), 0)
         from ledger_entry_before e
        where e.merchant_id = :merchant_id and e.live = :live
          and e.at >= greatest(:since::timestamptz, :after_at::timestamptz) and e.at < :until
          and (e.at, e.posting_id) > (:after_at, :after_id) and e.posting_id <= :newest_id
        group by e.at, e.posting_id
        order by e.at, e.posting_id
        limit :most)
  ) line
 order by at, id
 limit :most;

-- name: count_postings(merchant_id, live, since, until)$
select (select count(*)
          from ledger_posting
         where merchant_id = :merchant_id and live = :live and at >= :since and at < :until)
       + (select count(distinct posting_id)
            from ledger_entry_before
           where merchant_id = :merchant_id and live = :live and at >= :since and at < :until);

-- name: payee(merchant_id)^
-- Whether a merchant is paid out for now.
select m.id, m.suspended_at, p.status <> 'accepted' as unaccepted, p.payouts_from
  from merchant m
  left join business_profile p on p.merchant_id = m.id
 where m.id = :merchant_id;

-- name: payout_of_request(merchant_id, live, request_key)^
select merchant_id, live, id, currency, amount, reference, recorded_by, at, request_key
  from payout
 where merchant_id = :merchant_id and live = :live and request_key = :request_key;

-- name: payout_of_reference(merchant_id, live, reference, currency, amount)^
-- The payout that a reference was recorded with before, the very same one first: older ones may share a reference.
select merchant_id, live, id, currency, amount, reference, recorded_by, at, request_key
  from payout
 where merchant_id = :merchant_id and live = :live and reference = :reference
 order by currency = :currency and amount = :amount::numeric desc, id desc
 limit 1;

-- name: record_payout(merchant_id, live, currency, amount, reference, recorded_by, request_key, despite_wait, has_left, now)^
-- Money that an operator has sent to the merchant's bank, if so much was available and the live side is not suspended, or
-- if it has left already; none while the bank account is too new or the profile is not accepted, unless the operator says
-- that it shall be.
with available as (
    select coalesce(-sum(amount), 0) as amount
      from balance_parts(:merchant_id, :live)
     where account = 'available' and currency = :currency
), paid as (
    insert into payout (merchant_id, live, currency, amount, reference, recorded_by, request_key, at)
    select :merchant_id, :live, :currency, :amount, :reference, :recorded_by, :request_key, :now
      from available
     where (available.amount >= :amount::numeric or :has_left)
       and (:has_left
            or not exists (select from merchant where id = :merchant_id and :live and suspended_at is not null))
       and (:despite_wait or not :live
            or not exists (select from business_profile
                            where merchant_id = :merchant_id and (status <> 'accepted' or payouts_from > :now)))
 returning *
), posting as materialized (
    select paid.*, nextval('ledger_posting_id_seq') as posting_id from paid
), posted as (
    insert into ledger_posting (merchant_id, live, posting_id, kind, payout_id, currency, available, bank, at)
    select merchant_id, live, posting_id, 'payout', id, currency, amount, -amount, posted_at(merchant_id, live, at)
      from posting
)
select merchant_id, live, id, currency, amount, reference, recorded_by, at, request_key from paid;

-- name: payouts(merchant_id, live, before_at, before_id, most)
select merchant_id, live, id, currency, amount, reference, recorded_by, at, request_key
  from payout
 where merchant_id = :merchant_id and live = :live and (at, id) < (:before_at, :before_id)
 order by at desc, id desc
 limit :most;
