-- name: record_approvals(merchant_ids, lives, attempt_ids, acquirer_references, network_references, nets, reserves, fees, send_to, pingback_formats, payloads, leads_back, hold_untils, time_to_ship, reminded_before, sooner_by, now)
-- Payments that are for no subscription succeed, as the statement of this name in queries.sql has it for all: each part of
-- a statement costs, whether it finds rows or not, and most payments are such.
with paid as (
    update payment p
       set state = case when a.capture then 'captured' else 'authorized' end,
           net = o.net, reserve = o.reserve, fees = o.fees, paid_at = :now,
           ship_by = waits.ship_by,
           shipping_due_at = case when waits.ship_by + :sooner_by::interval < :now::timestamptz + :time_to_ship::interval
                                  then :now::timestamptz else waits.ship_by - :reminded_before::interval end,
           captured_at = case when a.capture and p.amount > 0 then :now::timestamptz end,
           funds_due_at = case when a.capture and p.amount > 0 then waits.funds_due_at end,
           funds_look_at = case when a.capture and p.amount > 0 then least(p.funds_look_at, waits.funds_due_at) end,
           rare_state = case when not a.capture then 'authorized' end
      from unnest(:merchant_ids::bigint[], :lives::boolean[], :attempt_ids::bigint[], :acquirer_references::text[],
                  :network_references::text[], :nets::numeric[], :reserves::numeric[], :fees::numeric[],
                  :send_to::text[], :pingback_formats::text[], :payloads::text[], :leads_back::boolean[],
                  :hold_untils::timestamptz[])
        as o (merchant_id, live, attempt_id, acquirer_reference, network_reference, net, reserve, fees, send_to,
              pingback_format, payload, leads_back, hold_until)
      join merchant m on m.id = o.merchant_id
     cross join lateral (
         select *
           from payment_attempt a
          where a.merchant_id = o.merchant_id and a.live = o.live and a.id = o.attempt_id
          limit 1
     ) a
     cross join lateral (
         select case when a.capture then null
                     when o.hold_until is null then :now::timestamptz + :time_to_ship::interval
                     else least(:now::timestamptz + :time_to_ship::interval,
                                greatest(:now::timestamptz, o.hold_until + side_clock(a.live, m.test_clock)))
                end as ship_by,
                :now::timestamptz + make_interval(days => m.settlement_days) as funds_due_at) waits
     where p.merchant_id = o.merchant_id and p.live = o.live and p.id = a.payment_id
       and p.attempt_id = a.id and coalesce(p.state in ('processing', 'challenged', 'pending'), false)
       and coalesce(a.state in ('processing', 'challenged', 'pending'), false)
 returning p.merchant_id, p.live, p.id, p.attempt_id, p.checkout_id, p.state, p.amount, p.currency,
           p.net, p.reserve, p.fees, p.sign_version, p.key_id, o.acquirer_reference, o.network_reference, o.send_to,
           o.pingback_format, o.payload, o.leads_back, m.test_clock
), approved as (
    update payment_attempt a
       set state = 'approved', acquirer_reference = paid.acquirer_reference,
           network_reference = paid.network_reference, finished_at = :now, lookup_at = null, leased_until = null
      from paid
     where a.merchant_id = paid.merchant_id and a.live = paid.live and a.id = paid.attempt_id
), led as (
    update checkout c
       set led_back_at = :now
      from paid
     where paid.leads_back and c.merchant_id = paid.merchant_id and c.live = paid.live and c.id = paid.checkout_id
), posted as (
    insert into ledger_posting (merchant_id, live, posting_id, kind, payment_id, currency, acquirer, pending, reserve,
                                fees, at)
    select merchant_id, live, nextval('ledger_posting_id_seq'), 'capture', id, currency, amount, -net, -reserve, -fees,
           posted_at_by(test_clock, live, :now)
      from paid
     where state = 'captured' and amount <> 0
), told as (
    insert into pingback (merchant_id, live, event, payment_id, url, sign_version, key_id, format, payload, state,
                          due_at, created_at)
    select merchant_id, live, 'payment', id, send_to, sign_version, key_id, pingback_format, payload,
           case when send_to is null then 'waiting' else 'due' end, :now, :now
      from paid
)
select merchant_id, live, id as payment_id, attempt_id from paid;
