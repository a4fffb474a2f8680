-- name: claim_reading(acquirer, lease)^
-- One worker at a time reads an acquirer's disputes, from where the last one stopped; its lease is in database time.
insert into dispute_reading as r (acquirer, leased_until)
values (:acquirer, clock_timestamp() + :lease::interval)
    on conflict (acquirer) do update
       set leased_until = excluded.leased_until
     where r.leased_until is null or r.leased_until < clock_timestamp()
returning place;

-- name: end_reading(acquirer, place, now)!
update dispute_reading set place = :place, read_at = :now, leased_until = null where acquirer = :acquirer;

-- name: disputed(acquirer, of_key, acquirer_reference, real_now)^
-- The payment that a dispute is about, as it stands, with what its pingback needs, and the chargeback if it is known.
-- Keys are unique for each merchant: one index probe per merchant finds it.
select a.merchant_id, a.live, a.state as attempt_state, p.id as payment_id, p.state, p.revision, p.moving_id,
       p.merchant_order_id, p.amount, p.currency, p.net, p.reserve, p.fees, p.refunded, p.refunding, p.charged_back,
       p.pending_taken, p.reserve_taken, p.fees_taken, p.settled_at, p.reserve_released_at, p.paid_at,
       p.subscription_id, p.pingback_url as form_url, p.sign_version,
       u.first_name, u.last_name, u.username, u.country, u.email, f.chargeback_fee,
       m.pingback_url as account_url, m.test_pingback_url, m.went_live_at, m.pingback_format, m.muted_events,
       :real_now::timestamptz + case when a.live then interval '0' else m.test_clock end as shop_now,
       c.id as chargeback_id, c.state as chargeback_state, c.amount as chargeback_amount,
       coalesce(c.id, nextval('movement_id_seq')) as reference_id
  from merchant m
  join payment_attempt a on a.merchant_id = m.id and a.idempotency_key = :of_key and a.acquirer = :acquirer
  join payment p on p.merchant_id = a.merchant_id and p.live = a.live and p.id = a.payment_id and p.attempt_id = a.id
  join customer u on u.merchant_id = p.merchant_id and u.live = p.live and u.id = p.customer_id
  join fee_plan f on f.merchant_id = m.id
  left join chargeback c
    on c.merchant_id = a.merchant_id and c.live = a.live and c.acquirer = a.acquirer
   and c.acquirer_reference = :acquirer_reference;

-- name: open_chargeback(merchant_id, live, payment_id, revision, id, acquirer, acquirer_reference, amount, currency, fee, reason, pending_taken, reserve_taken, kinds, accounts, amounts, event, pingback_url, pingback_format, payload, now)^
-- The bank took money back: the payment, its chargeback, the postings (the money, and the fee) and the pingback, or
-- nothing, if the payment is not any more as this was worked out from.
with moved as (
    update payment
       set state = 'charged_back', revision = revision + 1, charged_back = charged_back + :amount,
           pending_taken = pending_taken + :pending_taken, reserve_taken = reserve_taken + :reserve_taken
     where merchant_id = :merchant_id and live = :live and id = :payment_id and revision = :revision
       and state in ('captured', 'partially_refunded')
 returning *
), opened as (
    insert into chargeback (merchant_id, live, id, payment_id, state, acquirer, acquirer_reference, amount, currency,
                            fee, reason, muted, opened_at)
    select merchant_id, live, :id, id, 'open', :acquirer, :acquirer_reference, :amount, :currency, :fee, :reason,
           case when :event::text is null then array['chargeback'] else '{}' end, :now
      from moved
 returning *
), entry as (
    select * from unnest(:kinds::text[], :accounts::text[], :amounts::numeric[]) as e (kind, account, amount)
), posting as materialized (
    select moved.*, k.kind, nextval('ledger_posting_id_seq') as posting_id
      from moved
     cross join (select distinct kind from entry) k
), posted as (
    insert into ledger_entry (merchant_id, live, posting_id, kind, payment_id, account, currency, amount, at)
    select posting.merchant_id, posting.live, posting.posting_id, posting.kind, posting.id, entry.account,
           posting.currency, entry.amount, :now
      from posting
      join entry on entry.kind = posting.kind
     where entry.amount <> 0
), told as (
    insert into pingback (merchant_id, live, event, payment_id, reversal_id, url, sign_version, key_id, format, payload,
                          state, due_at, created_at)
    select merchant_id, live, :event, id, :id, :pingback_url, sign_version, key_id, :pingback_format, :payload,
           case when :pingback_url::text is null then 'waiting' else 'due' end, :now, :now
      from moved
     where :event::text is not null
)
select id from opened;

-- name: win_chargeback(merchant_id, live, id, revision, state, event, pingback_url, pingback_format, payload, now)^
-- The dispute was won: the money comes back, and becomes available. The fee is kept.
with moved as (
    update payment p
       set state = :state, revision = p.revision + 1, charged_back = p.charged_back - c.amount
      from chargeback c
     where c.merchant_id = :merchant_id and c.live = :live and c.id = :id and c.state = 'open'
       and p.merchant_id = c.merchant_id and p.live = c.live and p.id = c.payment_id
       and p.revision = :revision and p.state = 'charged_back'
 returning p.*, c.amount as returned
), closed as (
    update chargeback c
       set state = 'won', closed_at = :now,
           muted = c.muted || case when :event::text is null then array['chargeback_reversed'] else '{}' end
      from moved
     where c.merchant_id = moved.merchant_id and c.live = moved.live and c.id = :id
), posting as materialized (
    select moved.*, nextval('ledger_posting_id_seq') as posting_id from moved
), posted as (
    insert into ledger_entry (merchant_id, live, posting_id, kind, payment_id, account, currency, amount, at)
    select merchant_id, live, posting_id, 'chargeback_reversal', id, e.account, currency, e.amount, :now
      from posting
     cross join lateral (values ('acquirer', returned), ('available', -returned)) as e (account, amount)
), told as (
    insert into pingback (merchant_id, live, event, payment_id, reversal_id, url, sign_version, key_id, format, payload,
                          state, due_at, created_at)
    select merchant_id, live, :event, id, :id, :pingback_url, sign_version, key_id, :pingback_format, :payload,
           case when :pingback_url::text is null then 'waiting' else 'due' end, :now, :now
      from moved
     where :event::text is not null
)
select id from moved;

-- name: record_won_chargeback(merchant_id, live, payment_id, revision, id, acquirer, acquirer_reference, amount, currency, fee, reason, muted, events, urls, formats, payloads, now)^
-- A dispute that was opened and won before anybody read of it, of a payment that was given back since: its money came and
-- went, so that the fee alone is posted, and both are told.
with moved as (
    update payment
       set revision = revision + 1
     where merchant_id = :merchant_id and live = :live and id = :payment_id and revision = :revision
       and state in ('partially_refunded', 'refunded')
 returning *
), recorded as (
    insert into chargeback (merchant_id, live, id, payment_id, state, acquirer, acquirer_reference, amount, currency,
                            fee, reason, muted, opened_at, closed_at)
    select merchant_id, live, :id, id, 'won', :acquirer, :acquirer_reference, :amount, :currency, :fee, :reason,
           :muted, :now, :now
      from moved
 returning *
), posting as materialized (
    select recorded.*, nextval('ledger_posting_id_seq') as posting_id from recorded where fee <> 0
), posted as (
    insert into ledger_entry (merchant_id, live, posting_id, kind, payment_id, account, currency, amount, at)
    select merchant_id, live, posting_id, 'chargeback_fee', payment_id, e.account, currency, e.amount, :now
      from posting
     cross join lateral (values ('available', fee), ('fees', -fee)) as e (account, amount)
), told as (
    insert into pingback (merchant_id, live, event, payment_id, reversal_id, url, sign_version, key_id, format, payload,
                          state, due_at, created_at)
    select merchant_id, live, e.event, id, :id, e.url, sign_version, key_id, e.format, e.payload,
           case when e.url is null then 'waiting' else 'due' end, :now, :now
      from moved
     cross join unnest(:events::text[], :urls::text[], :formats::text[], :payloads::text[])
                with ordinality as e (event, url, format, payload, place)
     order by e.place
)
select id from recorded;

-- name: lose_chargeback(merchant_id, live, id, now)$
-- The dispute was lost: what was taken stays taken.
update chargeback
   set state = 'lost', closed_at = :now
 where merchant_id = :merchant_id and live = :live and id = :id and state = 'open'
returning id;

-- name: subscriptions_to_cancel(real_now)
-- Subscriptions that still run although a payment for them is charged back.
select s.merchant_id, s.live, s.id,
       :real_now::timestamptz + case when s.live then interval '0' else m.test_clock end as shop_now
  from chargeback c
  join payment p on p.merchant_id = c.merchant_id and p.live = c.live and p.id = c.payment_id
  join subscription s on s.merchant_id = p.merchant_id and s.live = p.live and s.id = p.subscription_id
  join merchant m on m.id = s.merchant_id
 where c.state = 'open' and s.state in ('Trial', 'Active');

-- name: record_evidence(merchant_id, live, id, evidence, now)^
update chargeback
   set evidence = :evidence, evidence_at = :now
 where merchant_id = :merchant_id and live = :live and id = :id and state = 'open'
returning *;

-- name: find(merchant_id, live, id)^
select c.*, p.merchant_order_id, p.subscription_id
  from chargeback c
  join payment p on p.merchant_id = c.merchant_id and p.live = c.live and p.id = c.payment_id
 where c.merchant_id = :merchant_id and c.live = :live and c.id = :id;

-- name: find_by_reference(merchant_id, live, acquirer, acquirer_reference)^
select c.*, p.merchant_order_id, p.subscription_id
  from chargeback c
  join payment p on p.merchant_id = c.merchant_id and p.live = c.live and p.id = c.payment_id
 where c.merchant_id = :merchant_id and c.live = :live and c.acquirer = :acquirer
   and c.acquirer_reference = :acquirer_reference;

-- name: browse(merchant_id, live, state, since, until, before_at, before_id, most)
-- A page of one side's chargebacks, newest first, of one state or (null) all.
select c.*, p.merchant_order_id, p.subscription_id
  from (
      select *
        from chargeback
       where merchant_id = :merchant_id and live = :live and (:state::text is null or state = :state)
         and opened_at >= :since and opened_at < :until and (opened_at, id) < (:before_at, :before_id)
       order by opened_at desc, id desc
       limit :most
  ) c
  join payment p on p.merchant_id = c.merchant_id and p.live = c.live and p.id = c.payment_id
 order by c.opened_at desc, c.id desc;

-- name: shops_of(id)
-- The sides with a chargeback of this id (ids are deployment-wide, so there is one at most).
select c.merchant_id, c.live from merchant m join chargeback c on c.merchant_id = m.id and c.id = :id;

-- name: purchase_of(payment_id)
-- A payment's purchase at its acquirer.
select a.merchant_id, a.live, a.acquirer, a.idempotency_key
  from merchant m
  join payment p on p.merchant_id = m.id and p.id = :payment_id
  join payment_attempt a on a.merchant_id = p.merchant_id and a.live = p.live and a.id = p.attempt_id;
