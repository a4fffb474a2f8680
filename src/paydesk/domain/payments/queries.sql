-- name: open_checkout(merchant_id, live, request_digest, merchant_order_id, amount, currency, description, success_url, pingback_url, sign_version, key_id, parameters, email, first_name, last_name, country, package_version_id, first_amount, line_items, payment_link_id, sale_quantity, now, expires_at)$
-- The same signed request gets the same checkout; one that has expired opens again, for the shop asked anew.
insert into checkout as c (merchant_id, live, request_digest, merchant_order_id, amount, currency, description,
                           success_url, pingback_url, sign_version, key_id, parameters, email, first_name, last_name,
                           country, package_version_id, first_amount, line_items, payment_link_id, sale_quantity,
                           created_at, expires_at)
values (:merchant_id, :live, :request_digest, :merchant_order_id, :amount, :currency, :description,
        :success_url, :pingback_url, :sign_version, :key_id, :parameters, :email, :first_name, :last_name,
        :country, :package_version_id, :first_amount, :line_items, :payment_link_id::bigint, :sale_quantity::integer,
        :now, :expires_at)
    on conflict (merchant_id, live, request_digest) do update
       set expires_at = case when c.expires_at <= :now then excluded.expires_at else c.expires_at end
returning id;

-- name: find_old_link(merchant_id, live, token, token_hash)$
-- The checkout whose link an older version made, hidden by now or still in clear.
select id from checkout where merchant_id = :merchant_id and live = :live and token_hash = :token_hash
 union all
select id from checkout where merchant_id = :merchant_id and live = :live and token = :token
 limit 1;

-- name: prepare_attempt(merchant_id, live, checkout_id, client_address, declined_since, kinds, subjects, anywhere, mosts, factors, spans, checkout_most, address_most, now, real_now)^
-- Counts a try before any bank is asked. What must be known besides: how often the payment was tried, and ids to which
-- secrets can be bound.
with known as materialized (
    select (select count(*)
              from payment_attempt
             where merchant_id = :merchant_id and live = :live and checkout_id = :checkout_id
               and payment_id = (select id
                                   from payment
                                  where merchant_id = :merchant_id and live = :live and not renewal
                                    and merchant_order_id = (select merchant_order_id
                                                               from checkout
                                                              where merchant_id = :merchant_id and live = :live
                                                                and id = :checkout_id))) as attempts,
           (select count(*)
              from (select 1
                      from payment_attempt
                     where merchant_id = :merchant_id and live = :live and client_address = :client_address
                       and state = 'declined' and finished_at > :declined_since
                     limit :address_most) few) as declines
)
select (select shipped_goods from merchant where id = :merchant_id) as shipped_goods,
       (select slow_methods from merchant where id = :merchant_id) as slow_methods,
       :live and (select suspended_at is not null from merchant where id = :merchant_id) as suspended,
       nextval('payment_attempt_id_seq') as attempt_id,
       nextval('card_id_seq') as card_id,
       g.refused, g.authenticate, g.paused
  from known k
 cross join lateral count_card_try(
       :merchant_id, :live, :kinds::text[], :subjects::text[], :anywhere::boolean[], :mosts::bigint[],
       :factors::bigint[], :spans::interval[], array['checkout', 'address_on_record'], array[k.attempts, k.declines],
       array[:checkout_most, :address_most]::bigint[], :now, :real_now) g;

-- name: begin_attempt(merchant_id, live, checkout_id, terms_agreed, previous_attempt_id, attempt_id, pads, acquirer, capture, card_id, number_sealed, vault_key_id, bin, last4, brand, exp_month, exp_year, holder, email, first_name, last_name, username, country, language, client_address, not_after, lookup_at, now)^
-- The intent, committed before the acquirer is called. The order's one payment row decides who may go: it is new, or it
-- was declined and still is held by the attempt that the caller saw. Whoever comes second gets no row, and a suspended
-- merchant's customer gets none either. The key is made of the order and the number of its attempts: that no other is
-- under way is what makes the number right. (A row that is new was locked by nobody, so its xmax is 0.) What a payment
-- link sells is taken here, too, as long as there is any, and so is the use of a coupon.
-- What an approval reports comes with it, as from attempts_to_report, and whether the acquirer's list had a purchase of this
-- order that our books had forgotten.
with who as (
    select nextval('customer_id_seq') as customer_id
), chosen as (
    select c.merchant_id, c.live, c.id, c.merchant_order_id,
           taken(coalesce(c.first_amount, c.amount), c.currency, c.live) as amount, c.currency,
           c.sign_version, c.key_id, c.pingback_url, c.terms_agreed, c.package_version_id, m.key_tag, m.test_generation,
           m.settlement_days
      from checkout c
      join merchant m on m.id = c.merchant_id and not (c.live and m.suspended_at is not null)
     where c.merchant_id = :merchant_id and c.live = :live and c.id = :checkout_id
       and (c.payment_link_id is null
            or takes_sale(c.merchant_id, c.live, c.id, c.payment_link_id, c.sale_quantity, c.merchant_order_id))
       and (c.coupon_id is null
            or takes_coupon(c.merchant_id, c.live, c.id, c.coupon_id, c.merchant_order_id, :email, :now))
), held as (
    insert into payment as p (merchant_id, live, merchant_order_id, state, amount, currency, checkout_id, attempt_id,
                              people_of, customer_id, card_id, sign_version, key_id, pingback_url, created_at,
                              funds_look_at)
    select c.merchant_id, c.live, c.merchant_order_id, 'processing', c.amount, c.currency, c.id, :attempt_id,
           :attempt_id, who.customer_id, :card_id, c.sign_version, c.key_id, c.pingback_url, :now,
           case when :capture and c.amount > 0 then :now::timestamptz + make_interval(days => c.settlement_days) end
      from chosen c cross join who
        on conflict (merchant_id, live, merchant_order_id) where not renewal do update
       set state = 'processing', rare_state = null, funds_look_at = excluded.funds_look_at,
           amount = excluded.amount, currency = excluded.currency,
           checkout_id = excluded.checkout_id, attempt_id = excluded.attempt_id, people_of = excluded.people_of,
           customer_id = excluded.customer_id, card_id = excluded.card_id, sign_version = excluded.sign_version,
           key_id = excluded.key_id, pingback_url = excluded.pingback_url
     where p.state = 'declined' and p.attempt_id = :previous_attempt_id::bigint
 returning p.merchant_id, p.live, p.id, p.merchant_order_id, p.amount, p.currency, p.checkout_id, p.attempt_id,
           p.customer_id, p.card_id, p.pingback_url, p.sign_version, p.key_id, p.renewal, p.subscription_id,
           p.period_number, p.xmax = 0 as is_first
), numbered as materialized (
    select held.*, case when is_first then 1 else next_attempt(merchant_id, live, id) end as number from held
), keyed as materialized (
    select n.*, derived_key(:pads::bytea, 'order ' || c.key_tag || ' '
               || case when n.live then 'live' else 'test ' || c.test_generation end || ' ' || n.number || ' '
               || n.merchant_order_id) as idempotency_key
      from numbered n cross join chosen c
), customer_kept as (
    insert into customer (merchant_id, live, id, payment_id, email, first_name, last_name, username, country, language,
                          created_at)
    select merchant_id, live, customer_id, id, :email, :first_name, :last_name, :username, :country, :language, :now
      from held
), card_kept as (
    insert into card (merchant_id, live, id, payment_id, number_sealed, vault_key_id, bin, last4, brand, exp_month,
                      exp_year, holder, created_at)
    select merchant_id, live, card_id, id, :number_sealed, :vault_key_id, :bin, :last4, :brand, :exp_month,
           :exp_year, :holder, :now
      from held
), agreed as (
    update checkout c
       set terms_agreed = :terms_agreed
      from held
     where :terms_agreed <> '' and c.merchant_id = held.merchant_id and c.live = held.live and c.id = held.checkout_id
), tried as (
    insert into payment_attempt (merchant_id, live, id, payment_id, checkout_id, state, idempotency_key, acquirer,
                                 capture, amount, currency, card_id, client_address, not_after, created_at, lookup_at,
                                 number)
    select merchant_id, live, attempt_id, id, checkout_id, 'processing', idempotency_key, :acquirer,
           :capture, amount, currency, card_id, :client_address, :not_after, :now, :lookup_at, number
      from keyed
)
select held.idempotency_key, held.number, c.key_tag, d.tag as deployment, d.epoch, held.merchant_id, held.live, held.attempt_id, held.amount, held.currency, held.id as payment_id,
       held.merchant_order_id, :first_name as first_name, :last_name as last_name, :username as username,
       :country as country, :email as email, f.rate, f.fixed, f.reserve_rate,
       held.pingback_url as form_url, held.sign_version, m.pingback_url as account_url, m.test_pingback_url,
       m.went_live_at, m.pingback_format, m.time_zone, held.renewal, held.subscription_id, held.period_number,
       held.customer_id, held.card_id, held.key_id, :acquirer as acquirer,
       case when :terms_agreed <> '' then :terms_agreed else c.terms_agreed end as terms_agreed, c.package_version_id,
       case when c.package_version_id is not null then nextval('subscription_id_seq') end as fresh_subscription_id,
       case when (select exists (select from alarm
                                  where merchant_id = 0 and live and kind = 'not_reconciled' and settled_at is null))
            then was_forgotten(:pads, :acquirer,
                               'order ' || c.key_tag || ' '
                                   || case when held.live then 'live' else 'test ' || c.test_generation end || ' ',
                               held.number, ' ' || held.merchant_order_id)
            else false end as was_forgotten
  from keyed held
  join chosen c on c.merchant_id = held.merchant_id and c.live = held.live and c.id = held.checkout_id
  join merchant m on m.id = held.merchant_id
  cross join deployment d
  cross join lateral fees_in(held.merchant_id, held.currency) f;

-- name: attempts_to_report(merchant_ids, lives, attempt_ids)
-- What an approval reports: the attempts with their payment, customer, fee plan and where the merchant wants to hear it.
-- It is read for those that are recorded later: after a challenge, or by the janitor.
select a.merchant_id, a.live, a.id as attempt_id, a.amount, a.currency, p.id as payment_id, p.merchant_order_id,
       u.first_name, u.last_name, u.username, u.country, u.email,
       f.rate, f.fixed, f.reserve_rate,
       p.pingback_url as form_url, p.sign_version, m.pingback_url as account_url, m.test_pingback_url, m.went_live_at,
       m.pingback_format, m.time_zone, m.charge_missed_until, a.created_at as tried_at, p.renewal,
       p.subscription_id, p.period_number, p.customer_id, p.card_id,
       p.key_id, a.acquirer, c.terms_agreed, c.package_version_id,
       case when c.package_version_id is not null then nextval('subscription_id_seq') end as fresh_subscription_id
  from unnest(:merchant_ids::bigint[], :lives::boolean[], :attempt_ids::bigint[]) as asked (merchant_id, live, id)
  join payment_attempt a on a.merchant_id = asked.merchant_id and a.live = asked.live and a.id = asked.id
  join payment p on p.merchant_id = a.merchant_id and p.live = a.live and p.id = a.payment_id
  join customer u on u.merchant_id = p.merchant_id and u.live = p.live and u.id = p.customer_id
  join merchant m on m.id = a.merchant_id
  cross join lateral fees_in(a.merchant_id, a.currency) f
  left join checkout c on c.merchant_id = a.merchant_id and c.live = a.live and c.id = a.checkout_id;

-- name: record_approvals(merchant_ids, lives, attempt_ids, acquirer_references, network_references, nets, reserves, fees, send_to, pingback_formats, payloads, subscription_ids, period_numbers, revisions, states, next_periods, dates_next, failures, counters, paid_number_counters, dates_active, dates_paid, dates_end, skipped, fresh, leads_back, hold_untils, time_to_ship, reminded_before, sooner_by, now)
-- Payments succeed: payment and attempt move, the ledger gets its postings and the merchant its pingback, or nothing
-- does. Only an attempt that still holds its payment counts; rows come back for those that moved. What is paid for a
-- subscription begins it (fresh) or moves it on, if it still is as the given version was made from; its card's number
-- is erased with the last payment agreed. Whose customer waits for this very answer is led back by it, once. (What the
-- guards hide in coalesce the planner can't guess: few rows are open, and it would begin with those.)
with outcome as (
    select *
      from unnest(:merchant_ids::bigint[], :lives::boolean[], :attempt_ids::bigint[], :acquirer_references::text[],
                  :network_references::text[], :nets::numeric[], :reserves::numeric[], :fees::numeric[],
                  :send_to::text[], :pingback_formats::text[], :payloads::text[], :subscription_ids::bigint[],
                  :period_numbers::integer[], :leads_back::boolean[], :hold_untils::timestamptz[],
                  :revisions::integer[], :states::text[], :next_periods::integer[], :dates_next::timestamptz[],
                  :failures::integer[], :counters::integer[], :paid_number_counters::integer[], :skipped::integer[],
                  :dates_active::timestamptz[], :dates_paid::timestamptz[], :dates_end::timestamptz[])
        as o (merchant_id, live, attempt_id, acquirer_reference, network_reference, net, reserve, fees, send_to,
              pingback_format, payload, subscription_id, period_number, leads_back, hold_until, revision, state,
              next_period, date_next, failures, counter, paid_number_counter, skipped, date_active, date_paid, date_end)
), fresh as (
    select * from json_populate_recordset(null::subscription, :fresh::json)
), locked as materialized (
    select s.*
      from (select *
              from unnest(:merchant_ids::bigint[], :lives::boolean[], :subscription_ids::bigint[], :revisions::integer[])
                as v (merchant_id, live, id, revision)
             order by merchant_id, id) v
     cross join lateral (
         select s.merchant_id, s.live, s.id
           from subscription s
          where s.merchant_id = v.merchant_id and s.live = v.live and s.id = v.id and s.revision = v.revision - 1
          limit 1
            for update
     ) s
), writable as (
    select merchant_id, live, id from locked
     union all
    select merchant_id, live, id from fresh
), paid as (
    update payment p
       set state = case when a.capture then 'captured' else 'authorized' end,
           net = o.net, reserve = o.reserve, fees = o.fees, paid_at = :now,
           ship_by = waits.ship_by,
           shipping_due_at = case when waits.ship_by + :sooner_by::interval < :now::timestamptz + :time_to_ship::interval
                                  then :now::timestamptz else waits.ship_by - :reminded_before::interval end,
           captured_at = case when a.capture and p.amount > 0 then :now::timestamptz end,
           funds_due_at = case when a.capture and p.amount > 0 then waits.funds_due_at end,
           funds_look_at = case when a.capture and p.amount > 0 then least(p.funds_look_at, waits.funds_due_at) end,
           rare_state = case when not a.capture then 'authorized' end,
           subscription_id = o.subscription_id, period_number = o.period_number
      from outcome o
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
       and (o.subscription_id is null
            or exists (select from writable w
                        where w.merchant_id = o.merchant_id and w.live = o.live and w.id = o.subscription_id))
 returning p.merchant_id, p.live, p.id, p.attempt_id, p.checkout_id, p.subscription_id, p.state, p.amount, p.currency,
           p.net, p.reserve, p.fees, p.sign_version, p.key_id, o.acquirer_reference, o.network_reference, o.send_to,
           o.pingback_format, o.payload, o.leads_back, o.revision, o.state as moved_to, o.next_period, o.date_next,
           o.failures, o.counter, o.paid_number_counter, o.date_active, o.date_paid, o.date_end, o.skipped
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
), posting as (
    select paid.merchant_id, paid.live, paid.id, paid.amount, paid.currency, paid.net, paid.reserve, paid.fees,
           nextval('ledger_posting_id_seq') as posting_id, m.test_clock
      from paid
      join merchant m on m.id = paid.merchant_id
     where paid.state = 'captured'
), posted as (
    insert into ledger_posting (merchant_id, live, posting_id, kind, payment_id, currency, acquirer, pending, reserve,
                                fees, at)
    select merchant_id, live, posting_id, 'capture', id, currency, amount, -net, -reserve, -fees,
           posted_at_by(test_clock, live, :now)
      from posting
     where amount <> 0
), told as (
    insert into pingback (merchant_id, live, event, payment_id, url, sign_version, key_id, format, payload, state,
                          due_at, created_at)
    select merchant_id, live, 'payment', id, send_to, sign_version, key_id, pingback_format, payload,
           case when send_to is null then 'waiting' else 'due' end, :now, :now
      from paid
), begun as (
    insert into subscription (merchant_id, live, id, state, package_version_id, init_payment_id,
                              init_merchant_order_id, customer_id, card_id, acquirer, network_reference, terms_agreed,
                              portal_seed, sign_version, key_id, pingback_url, time_zone, anchor, next_period,
                              date_next, failures, counter, paid_number_counter, date_start, date_active, date_paid,
                              date_end, cancelled_by, revision, created_at, skipped)
    select v.merchant_id, v.live, v.id, v.state, v.package_version_id, v.init_payment_id, v.init_merchant_order_id,
           v.customer_id, v.card_id, v.acquirer, v.network_reference, v.terms_agreed, v.portal_seed, v.sign_version,
           v.key_id, v.pingback_url, v.time_zone, v.anchor, v.next_period, v.date_next, v.failures, v.counter,
           v.paid_number_counter, v.date_start, v.date_active, v.date_paid, v.date_end, v.cancelled_by, v.revision,
           v.created_at, v.skipped
      from fresh v
      join paid on paid.merchant_id = v.merchant_id and paid.live = v.live and paid.subscription_id = v.id
 returning merchant_id, live, package_version_id, card_id, date_next
), sold as (
    update subscription_package k
       set subscriptions_count = k.subscriptions_count + counted.fresh
      from (select b.merchant_id, b.live, v.package_id, count(*) as fresh
              from begun b
              join package_version v
                on v.merchant_id = b.merchant_id and v.live = b.live and v.id = b.package_version_id
             group by b.merchant_id, b.live, v.package_id) counted
     where k.merchant_id = counted.merchant_id and k.live = counted.live and k.id = counted.package_id
), sold_version as (
    update package_version v
       set subscriptions_count = v.subscriptions_count + counted.fresh
      from (select merchant_id, live, package_version_id, count(*) as fresh
              from begun
             group by merchant_id, live, package_version_id) counted
     where v.merchant_id = counted.merchant_id and v.live = counted.live and v.id = counted.package_version_id
), renewed as (
    update subscription s
       set state = paid.moved_to, next_period = paid.next_period, date_next = paid.date_next, failures = paid.failures,
           counter = paid.counter, paid_number_counter = paid.paid_number_counter, date_active = paid.date_active,
           date_paid = paid.date_paid, date_end = paid.date_end, skipped = paid.skipped, revision = paid.revision,
           charging_attempt_id = null
      from paid
     where s.merchant_id = paid.merchant_id and s.live = paid.live and s.id = paid.subscription_id
       and s.revision = paid.revision - 1
 returning s.merchant_id, s.live, s.card_id, s.date_next, s.change_id
), card_forgotten as (
    update card c
       set number_sealed = null, erased_at = :now
      from (select merchant_id, live, card_id from begun where date_next is null
             union all
            select merchant_id, live, card_id from renewed where date_next is null and change_id is null) over
     where c.merchant_id = over.merchant_id and c.live = over.live and c.id = over.card_id
       and c.number_sealed is not null
)
select merchant_id, live, id as payment_id, attempt_id from paid;

-- name: record_declines(merchant_ids, lives, attempt_ids, states, reasons, lookup_ats, now)
-- Attempts end without money: the payment is open for another attempt. state is 'declined' (the bank said no), 'failed'
-- (the acquirer never saw it) or 'abandoned' (a challenge that the customer left); the last two are looked up again.
-- The card's number, which is there if it was to pay for a subscription, is erased. Whose payment was pending waits for
-- word, and gets a mail.
with outcome as (
    select *
      from unnest(:merchant_ids::bigint[], :lives::boolean[], :attempt_ids::bigint[], :states::text[],
                  :reasons::text[], :lookup_ats::timestamptz[])
        as o (merchant_id, live, attempt_id, state, reason, lookup_at)
), refused as (
    update payment p
       set state = 'declined', rare_state = 'declined', funds_look_at = null
      from outcome o
      join payment_attempt a on a.merchant_id = o.merchant_id and a.live = o.live and a.id = o.attempt_id
     where p.merchant_id = o.merchant_id and p.live = o.live and p.id = a.payment_id
       and p.attempt_id = a.id and coalesce(p.state in ('processing', 'challenged', 'pending'), false)
       and coalesce(a.state in ('processing', 'challenged', 'pending'), false)
 returning p.merchant_id, p.live, p.id, p.attempt_id, o.state as ended_as, o.reason, o.lookup_at,
           a.state = 'pending' as was_pending
), ended as (
    update payment_attempt a
       set state = refused.ended_as, decline_reason = refused.reason, finished_at = :now,
           lookup_at = refused.lookup_at, lookups = 0, leased_until = null
      from refused
     where a.merchant_id = refused.merchant_id and a.live = refused.live and a.id = refused.attempt_id
 returning a.merchant_id, a.live, a.card_id
), to_tell as (
    update hosted_page h
       set mailed = false
      from refused
     where refused.was_pending and h.merchant_id = refused.merchant_id and h.live = refused.live
       and h.attempt_id = refused.attempt_id
), card_forgotten as (
    update card c
       set number_sealed = null, erased_at = :now
      from ended
     where c.merchant_id = ended.merchant_id and c.live = ended.live and c.id = ended.card_id
       and c.number_sealed is not null
)
select merchant_id, live, id as payment_id, attempt_id from refused;

-- name: record_challenge(merchant_id, live, attempt_id, acquirer_reference, challenge_url, lookup_at)^
-- The bank wants to see the customer; the payment waits for the answer.
with asked as (
    update payment p
       set state = 'challenged', rare_state = 'challenged', funds_look_at = null
      from payment_attempt a
     where a.merchant_id = :merchant_id and a.live = :live and a.id = :attempt_id and a.state = 'processing'
       and p.merchant_id = a.merchant_id and p.live = a.live and p.id = a.payment_id
       and p.attempt_id = a.id and p.state = 'processing'
 returning p.merchant_id, p.live, p.attempt_id
)
update payment_attempt a
   set state = 'challenged', acquirer_reference = :acquirer_reference, challenge_url = :challenge_url,
       lookup_at = :lookup_at, lookups = 0, leased_until = null
  from asked
 where a.merchant_id = asked.merchant_id and a.live = asked.live and a.id = asked.attempt_id
returning a.id;

-- name: claim_lookups(now, most, lease)
-- Attempts whose fate the acquirer must be asked for, each taken by one janitor under a lease in database time; none that
-- is live in a copy for staging.
with due as materialized (
    select merchant_id, id
      from payment_attempt
     where lookup_at <= :now and (leased_until is null or leased_until < clock_timestamp())
       and not (live and (select copied_at is not null from deployment))
       and coalesce(merchant_id <> all (array(select merchant_id from merchant_fence)), true)
     order by lookup_at
     limit :most
       for update skip locked
), looked as (
    update hosted_page h
       set looked_at = :now
      from due
     where h.merchant_id = due.merchant_id and h.attempt_id = due.id
 returning h.merchant_id, h.attempt_id, h.expires_at, h.ending, h.slow, h.sure_by
)
update payment_attempt a
   set leased_until = clock_timestamp() + :lease::interval, lookups = a.lookups + 1
  from due
  join merchant m on m.id = due.merchant_id
  left join looked h on h.merchant_id = due.merchant_id and h.attempt_id = due.id
 where a.merchant_id = due.merchant_id and a.id = due.id
returning a.merchant_id, a.live, a.id as attempt_id, a.payment_id, a.checkout_id, a.state, a.idempotency_key,
          a.acquirer, a.not_after, a.created_at, a.finished_at, a.lookups, a.alerted_at, a.amount, a.currency,
          a.capture, a.acquirer_reference, a.lookup_at, h.expires_at as page_ends_at,
          coalesce(h.slow, false) as slow, coalesce(h.sure_by, a.sure_by) as sure_by, a.decline_reason,
          coalesce(h.ending, false) or a.live and m.suspended_at is not null as page_ending,
          coalesce((select p.renewal from payment p
                     where p.merchant_id = a.merchant_id and p.live = a.live and p.id = a.payment_id), false) as renewal,
          side_clock(a.live, m.test_clock) as clock;

-- name: schedule_lookups(merchant_ids, lives, attempt_ids, states, claimed_ats, lookup_ats, alerted_ats)!
-- Nothing new was learnt: ask again later (never, if lookup_at is null). An attempt that somebody else moved meanwhile
-- has its next date from there, and one that was hurried while it was asked for is asked for again.
update payment_attempt a
   set lookup_at = case when a.lookup_at = o.claimed_at then o.lookup_at else a.lookup_at end, leased_until = null, alerted_at = coalesce(a.alerted_at, o.alerted_at)
  from unnest(:merchant_ids::bigint[], :lives::boolean[], :attempt_ids::bigint[], :states::text[],
              :claimed_ats::timestamptz[], :lookup_ats::timestamptz[], :alerted_ats::timestamptz[])
    as o (merchant_id, live, attempt_id, state, claimed_at, lookup_at, alerted_at)
 where a.merchant_id = o.merchant_id and a.live = o.live and a.id = o.attempt_id and a.state = o.state;

-- name: hurry_lookups(merchant_ids, lives, attempt_ids, now)!
-- A bank says that it approved attempts which were given up: the janitor looks at once, and undoes them.
update payment_attempt a
   set lookup_at = :now
  from unnest(:merchant_ids::bigint[], :lives::boolean[], :attempt_ids::bigint[]) as o (merchant_id, live, attempt_id)
 where a.merchant_id = o.merchant_id and a.live = o.live and a.id = o.attempt_id
   and a.state in ('failed', 'abandoned') and (a.lookup_at is null or a.lookup_at > :now);

-- name: attempt_states(merchant_ids, lives, attempt_ids)
select a.id, a.state
  from unnest(:merchant_ids::bigint[], :lives::boolean[], :attempt_ids::bigint[]) as asked (merchant_id, live, id)
  join payment_attempt a on a.merchant_id = asked.merchant_id and a.live = asked.live and a.id = asked.id;
