-- name: claim_reading(acquirer, lease, now)^
-- One worker at a time reads an acquirer's disputes, from where the last one stopped; its lease is in database time.
-- Whoever comes while somebody reads does not wait for what that one writes.
insert into dispute_reading as r (acquirer, leased_until, began_at)
select :acquirer::text, clock_timestamp() + :lease::interval, :now::timestamptz
 where :acquirer::text <> all (accounts_left_alone(true))
   and not exists (select from dispute_reading where acquirer = :acquirer and leased_until >= clock_timestamp())
    on conflict (acquirer) do update
       set leased_until = excluded.leased_until
     where r.leased_until is null or r.leased_until < clock_timestamp()
returning place, coalesce(read_at, began_at) as last_at, leased_until;

-- name: hold(acquirer, held, lease)$
-- Whoever has the lease that it was given (until `held`) has it for longer, and nobody else gets it, or takes the account
-- elsewhere, before the transaction that this is in has ended. No row: it is another's, or the account is not here any more.
update dispute_reading
   set leased_until = clock_timestamp() + :lease::interval
 where acquirer = :acquirer and leased_until = :held
returning leased_until;

-- name: move_on(acquirer, place)!
-- A page is in the books, or in the list of those that wait: it need not be read again. Whoever moves on holds the lease.
update dispute_reading set place = :place where acquirer = :acquirer;

-- name: end_reading(acquirer, held, read_at)!
-- A reading is over: it came to its end then, or (null) it did not.
update dispute_reading
   set read_at = coalesce(:read_at, read_at), leased_until = null
 where acquirer = :acquirer and leased_until = :held;

-- name: reading_ages(acquirers, now)
-- How many seconds ago the disputes of each acquirer were last read to their end.
select acquirer, extract(epoch from :now::timestamptz - coalesce(read_at, began_at))::double precision as age
  from dispute_reading
 where acquirer = any(:acquirers::text[]) and acquirer <> all (accounts_left_alone(true));

-- name: to_ask(acquirer, before, most)
-- Chargebacks that are not over and of which the acquirer has not been asked since.
select merchant_id, live, id, acquirer_reference
  from chargeback
 where acquirer = :acquirer and asked_at < :before
   and (state in ('inquiry', 'open') or state = 'won' and returned < taken)
   and coalesce(merchant_id <> all (array(select merchant_id from merchant_fence)), true)
 order by asked_at
 limit :most;

-- name: asked(merchant_ids, ids, at)!
update chargeback c
   set asked_at = :at
  from unnest(:merchant_ids::bigint[], :ids::bigint[]) as d (merchant_id, id)
 where c.merchant_id = d.merchant_id and c.id = d.id;

-- name: is_forgotten(acquirer, of_key)$
-- Whether the purchase was one of a test side that was emptied since. What is kept of who has gone to another cell says no
-- such thing: that one may come back before it was booked there.
select exists (select
                 from merchant m
                 join forgotten_attempt f
                   on f.merchant_id = m.id and f.idempotency_key = :of_key and f.acquirer = :acquirer
                where m.id <> all (array(select merchant_id from merchant_fence where moved_at is not null)));

-- name: find_charged_back(acquirer, of_key, acquirer_reference, real_now)^
-- The payment that a dispute is about, as it stands, with what its pingback needs, and the chargeback if it is known.
-- Keys are unique for each merchant: one index probe per merchant finds it. Of who has gone to another cell what is here is
-- what was.
select r.*, a.state as attempt_state, f.chargeback_fee,
       (select p.attempt_id = a.id
          from payment p
         where p.merchant_id = a.merchant_id and p.live = a.live and p.id = a.payment_id) as holds,
       (select d.brand
          from payment p
          join card d on d.merchant_id = p.merchant_id and d.live = p.live and d.id = p.card_id
         where p.merchant_id = r.merchant_id and p.live = r.live and p.id = r.payment_id) as brand,
       :real_now::timestamptz + side_clock(a.live, m.test_clock) as shop_now,
       c.id as chargeback_id, c.payment_id as chargeback_payment_id, c.state as chargeback_state,
       c.amount as chargeback_amount, c.taken, c.returned, c.takes, c.returns, c.aside, c.told_at,
       coalesce(c.id, nextval('movement_id_seq')) as reference_id
  from merchant m
  join payment_attempt a on a.merchant_id = m.id and a.idempotency_key = :of_key and a.acquirer = :acquirer
  join reversible_payment r
    on r.merchant_id = a.merchant_id and r.live = a.live and r.payment_id = a.payment_id
  cross join lateral fees_in(m.id, r.currency) f
  left join chargeback c
    on c.merchant_id = a.merchant_id and c.live = a.live and c.acquirer = a.acquirer
   and c.acquirer_reference = :acquirer_reference
 where m.id <> all (array(select merchant_id from merchant_fence where moved_at is not null));

-- name: book(merchant_id, live, payment_id, revision, id, acquirer, acquirer_reference, state, amount, currency, disputed_amount, disputed_currency, taken, returned, fee, reason, aside, ends_subscription, told_at, asked_at, payment_state, charged_back, pending_taken, reserve_taken, kinds, accounts, amounts, event, step, told, send_to, pingback_format, payload, now)^
-- One step of a chargeback, the first or a later one: the payment, its chargeback, the postings (the money, and the fee)
-- and the pingback, or nothing, if the payment is not any more as this was worked out from. (Each change of a chargeback
-- changes its payment's revision, so that it is guarded by it too.)
with moved as (
    update payment
       set state = coalesce(:payment_state, state), rare_state = rare_state(coalesce(:payment_state, state)),
           revision = revision + 1,
           charged_back = charged_back + :charged_back, pending_taken = pending_taken + :pending_taken,
           reserve_taken = reserve_taken + :reserve_taken
     where merchant_id = :merchant_id and live = :live and id = :payment_id and revision = :revision
 returning merchant_id, live, id, currency, subscription_id, sign_version, key_id
), booked as (
    insert into chargeback as c (merchant_id, live, id, payment_id, state, acquirer, acquirer_reference, amount,
                                 currency, disputed_amount, disputed_currency, taken, returned, takes, returns, fee,
                                 reason, muted, aside, ends_subscription, told_at, asked_at, mailed, opened_at,
                                 closed_at)
    select merchant_id, live, :id, id, :state::text, :acquirer, :acquirer_reference, :amount, :currency, :disputed_amount,
           :disputed_currency, :taken::numeric, :returned::numeric,
           (:event::text is not distinct from 'chargeback')::integer,
           (:event::text is not distinct from 'chargeback_reversed')::integer, :fee, :reason,
           case when :event::text is not null and not :told::boolean then array[:event::text] else '{}' end, :aside,
           :ends_subscription and subscription_id is not null, :told_at, :asked_at, :taken::numeric = 0, :now::timestamptz,
           case when :state::text in ('inquiry', 'open') then null else :now::timestamptz end
      from moved
        on conflict (merchant_id, id) do update
       set state = excluded.state, amount = excluded.amount, disputed_amount = excluded.disputed_amount,
           disputed_currency = excluded.disputed_currency, taken = excluded.taken, returned = excluded.returned,
           takes = c.takes + excluded.takes, returns = c.returns + excluded.returns, fee = c.fee + excluded.fee,
           reason = excluded.reason, muted = c.muted || excluded.muted,
           ends_subscription = excluded.ends_subscription, told_at = greatest(c.told_at, excluded.told_at),
           mailed = c.mailed and not (c.taken = 0 and excluded.taken > 0),
           closed_at = case when excluded.closed_at is null then null
                            when c.state = excluded.state then coalesce(c.closed_at, excluded.closed_at)
                            else excluded.closed_at
                       end
 returning c.merchant_id, c.id
), entry as (
    select * from unnest(:kinds::text[], :accounts::text[], :amounts::numeric[]) as e (kind, account, amount)
), posting as materialized (
    select moved.*, k.kind, nextval('ledger_posting_id_seq') as posting_id
      from moved
     cross join (select distinct kind from entry) k
), posted as (
    insert into ledger_posting (merchant_id, live, posting_id, kind, payment_id, currency, acquirer, pending, available,
                                reserve, fees, bank, at)
    select g.merchant_id, g.live, g.posting_id, g.kind, g.id, g.currency,
           coalesce(sum(e.amount) filter (where e.account = 'acquirer'), 0),
           coalesce(sum(e.amount) filter (where e.account = 'pending'), 0),
           coalesce(sum(e.amount) filter (where e.account = 'available'), 0),
           coalesce(sum(e.amount) filter (where e.account = 'reserve'), 0),
           coalesce(sum(e.amount) filter (where e.account = 'fees'), 0),
           coalesce(sum(e.amount) filter (where e.account = 'bank'), 0),
           posted_at(g.merchant_id, g.live, :now)
      from posting g
      join entry e on e.kind = g.kind
     where e.amount <> 0
     group by g.merchant_id, g.live, g.posting_id, g.kind, g.id, g.currency
), told as (
    insert into pingback (merchant_id, live, event, payment_id, reversal_id, reversal_step, url, sign_version, key_id,
                          format, payload, state, due_at, created_at)
    select merchant_id, live, :event, id, :id, :step, :send_to, sign_version, key_id, :pingback_format, :payload,
           case when :send_to::text is null then 'waiting' else 'due' end, :now, :now
      from moved
     where :event::text is not null and :told::boolean
)
select id from booked;

-- name: subscriptions_to_end(real_now, aside_since)
-- Chargebacks that are not won, with the subscription behind them, whatever it came to since. What was set aside lately is
-- left out.
select c.merchant_id, c.live, c.id as chargeback_id, s.id, s.state,
       :real_now::timestamptz + side_clock(s.live, m.test_clock) as shop_now
  from chargeback c
  join payment p on p.merchant_id = c.merchant_id and p.live = c.live and p.id = c.payment_id
  join subscription s on s.merchant_id = p.merchant_id and s.live = p.live and s.id = p.subscription_id
  join merchant m on m.id = s.merchant_id
 where c.ends_subscription and coalesce(c.merchant_id <> all (array(select merchant_id from merchant_fence)), true)
   and not exists (select
                     from alarm a
                    where a.merchant_id = c.merchant_id and a.live = c.live and a.kind = 'set_aside'
                      and a.subject = 'chargeback ' || c.id and a.settled_at is null and a.last_at > :aside_since)
 order by c.merchant_id, c.id;

-- name: subscription_ended(merchant_id, live, id)!
update chargeback set ends_subscription = false where merchant_id = :merchant_id and live = :live and id = :id;

-- name: record_evidence(merchant_id, live, id, evidence, key, once, patience, now)^
-- What is about to be handed to the bank, before it is: of any number that press at once one gets a row, and so does the
-- next one only when that has ended (or nobody knows after :patience). :once, what the bank has is not given again.
update chargeback
   set evidence = :evidence, evidence_at = :now, evidence_state = 'sending', evidence_key = :key,
       evidence_tried_at = now()
 where merchant_id = :merchant_id and live = :live and id = :id and state in ('inquiry', 'open')
   and (respond_by is null or respond_by > now())
   and (evidence_state <> 'sending' or evidence_tried_at < now() - :patience::interval)
   and (not :once::boolean or evidence_state in ('sending', 'unknown', 'refused')
        or evidence_state = '' and evidence_at is null)
returning id;

-- name: find_handing_over(merchant_id, live, id, key)^
select id from chargeback where merchant_id = :merchant_id and live = :live and id = :id and evidence_key = :key;

-- name: evidence_ended(merchant_id, live, id, key, state)!
-- What the bank said to the last handing over; of one that another has followed it says nothing any more.
update chargeback
   set evidence_state = :state, evidence_draft = case when :state = 'sent' then '' else evidence_draft end
 where merchant_id = :merchant_id and live = :live and id = :id and evidence_key = :key
   and evidence_state in ('sending', 'unknown');

-- name: save_draft(merchant_id, live, id, draft, patience)^
-- What can still be handed over may be written.
update chargeback
   set evidence_draft = :draft
 where merchant_id = :merchant_id and live = :live and id = :id and state in ('inquiry', 'open')
   and (respond_by is null or respond_by > now())
   and (evidence_state in ('unknown', 'refused') or evidence_state = '' and evidence_at is null
        or evidence_state = 'sending' and evidence_tried_at < now() - :patience::interval)
returning id;

-- name: find_answer(merchant_id, live, id)^
select respond_by, evidence_draft, evidence_state, evidence_key, evidence_tried_at, now() as read_at
  from chargeback
 where merchant_id = :merchant_id and live = :live and id = :id;

-- name: note_answer(merchant_id, live, id, respond_by, answered)!
-- What the acquirer says of the merchant's answer: until when it takes one, and that it has one of which nobody knew.
update chargeback
   set respond_by = coalesce(:respond_by::timestamptz, respond_by),
       evidence_state = case when :answered::boolean and evidence_state in ('sending', 'unknown') then 'sent'
                             else evidence_state end
 where merchant_id = :merchant_id and live = :live and id = :id
   and (:respond_by::timestamptz is distinct from respond_by and :respond_by::timestamptz is not null
        or :answered::boolean and evidence_state in ('sending', 'unknown'));

-- name: find(merchant_id, live, id)^
select c.id, c.payment_id, c.state, c.amount, c.currency, c.taken, c.returned, c.disputed_amount, c.disputed_currency,
       c.fee, c.reason, c.evidence, c.evidence_at, c.opened_at, c.closed_at, c.acquirer, c.acquirer_reference,
       p.merchant_order_id, p.subscription_id
  from chargeback c
  join payment p on p.merchant_id = c.merchant_id and p.live = c.live and p.id = c.payment_id
 where c.merchant_id = :merchant_id and c.live = :live and c.id = :id;

-- name: find_by_reference(merchant_id, live, acquirer, acquirer_reference)^
select c.id, c.payment_id, c.state, c.amount, c.currency, c.taken, c.returned, c.disputed_amount, c.disputed_currency,
       c.fee, c.reason, c.evidence, c.evidence_at, c.opened_at, c.closed_at, c.acquirer, c.acquirer_reference,
       p.merchant_order_id, p.subscription_id
  from chargeback c
  join payment p on p.merchant_id = c.merchant_id and p.live = c.live and p.id = c.payment_id
 where c.merchant_id = :merchant_id and c.live = :live and c.acquirer = :acquirer
   and c.acquirer_reference = :acquirer_reference;

-- name: list_chargebacks(merchant_id, live, state, since, until, before_at, before_id, most)
-- A page of one side's chargebacks, newest first, of one state or (null) all.
select c.id, c.payment_id, c.state, c.amount, c.currency, c.taken, c.returned, c.disputed_amount, c.disputed_currency,
       c.fee, c.reason, c.evidence, c.evidence_at, c.opened_at, c.closed_at, c.acquirer, c.acquirer_reference,
       p.merchant_order_id, p.subscription_id
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

-- name: purchase_of(merchant_id, live, payment_id)^
-- A payment's purchase at its acquirer.
select a.acquirer, a.idempotency_key as key
  from payment p
  join payment_attempt a on a.merchant_id = p.merchant_id and a.live = p.live and a.id = p.attempt_id
 where p.merchant_id = :merchant_id and p.live = :live and p.id = :payment_id;
