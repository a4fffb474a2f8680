-- name: prepare_card_change(merchant_id, live, subscription_id, client_address, since, kinds, subjects, anywhere, mosts, factors, spans, checkout_most, address_most, now, real_now)^
-- Counts a try before any bank is asked. What must be known besides: how often the card was changed, and ids to which
-- secrets can be bound.
with known as materialized (
    select (select count(*)
              from card_change
             where merchant_id = :merchant_id and live = :live and subscription_id = :subscription_id
               and created_at > :since) as attempts,
           (select count(*)
              from (select 1
                      from card_change
                     where merchant_id = :merchant_id and live = :live and client_address = :client_address
                       and state = 'declined' and finished_at > :since
                     limit :address_most) few)
           + (select count(*)
                from (select 1
                        from payment_attempt
                       where merchant_id = :merchant_id and live = :live and client_address = :client_address
                         and state = 'declined' and finished_at > :since
                       limit :address_most) few) as declines
)
select (select slow_methods from merchant where id = :merchant_id) as slow_methods,
       nextval('card_change_id_seq') as change_id,
       nextval('card_id_seq') as card_id,
       g.refused, g.authenticate, g.paused
  from known k
 cross join lateral count_card_try(
       :merchant_id, :live, :kinds::text[], :subjects::text[], :anywhere::boolean[], :mosts::bigint[],
       :factors::bigint[], :spans::interval[], array['checkout', 'address_on_record'], array[k.attempts, k.declines],
       array[:checkout_most, :address_most]::bigint[], :now, :real_now) g;

-- name: begin_card_change(merchant_id, live, subscription_id, change_id, idempotency_key, acquirer, card_id, number_sealed, vault_key_id, bin, last4, brand, exp_month, exp_year, holder, client_address, not_after, lookup_at, now)^
-- The intent, committed before the acquirer is asked about the card. A subscription that ended has none, and only one
-- may be open for each: whoever comes second gets no row.
with held as (
    insert into card_change (merchant_id, live, id, subscription_id, state, idempotency_key, acquirer, card_id,
                             client_address, not_after, created_at, lookup_at)
    select s.merchant_id, s.live, :change_id, s.id, 'processing', :idempotency_key, :acquirer, :card_id,
           :client_address, :not_after, :now, :lookup_at
      from subscription s
     where s.merchant_id = :merchant_id and s.live = :live and s.id = :subscription_id
       and s.state in ('Trial', 'Active')
        on conflict (merchant_id, live, subscription_id) where state in ('processing', 'challenged') do nothing
 returning *
), card_kept as (
    insert into card (merchant_id, live, id, number_sealed, vault_key_id, bin, last4, brand, exp_month,
                      exp_year, holder, created_at)
    select merchant_id, live, card_id, :number_sealed, :vault_key_id, :bin, :last4, :brand, :exp_month,
           :exp_year, :holder, :now
      from held
)
select held.id, s.init_merchant_order_id, m.key_tag, d.tag as deployment, d.epoch
  from held
  join subscription s on s.merchant_id = held.merchant_id and s.live = held.live and s.id = held.subscription_id
  join merchant m on m.id = held.merchant_id
  cross join deployment d;

-- name: begin_change_page(merchant_id, live, change_id, asked, currency, ends_at)!
-- Within the transaction that commits the intent: a change that is made on a page has it, or there is no change.
update card_change
   set page_asked = :asked, page_currency = :currency, page_ends_at = :ends_at
 where merchant_id = :merchant_id and live = :live and id = :change_id;

-- name: stored_change_page(merchant_id, live, change_id)^
-- All that was asked for a change's page, with the rows that hold the rest of it; none of it changes.
select w.*, c.page_asked as asked, c.idempotency_key
  from card_change c
  join subscription_planned w on w.merchant_id = c.merchant_id and w.live = c.live and w.id = c.subscription_id
 where c.merchant_id = :merchant_id and c.live = :live and c.id = :change_id;

-- name: name_new_instrument(merchant_id, live, change_id, brand, last4, wallet, stored_reference, exp_month, exp_year, slow)!
-- What was chosen on the acquirer's page is known once it is kept; the change's card has been empty until then.
update card d
   set brand = :brand, last4 = :last4, wallet = :wallet, stored_reference = :stored_reference, acquirer = c.acquirer,
       exp_month = :exp_month, exp_year = :exp_year, slow = :slow
  from card_change c
 where c.merchant_id = :merchant_id and c.live = :live and c.id = :change_id
   and d.merchant_id = c.merchant_id and d.live = c.live and d.id = c.card_id and d.stored_reference = ''
   and d.erased_at is null;

-- name: change_to_record(merchant_id, live, change_id)^
-- A change that is still open, with its subscription as it stands.
select w.*, side_clock(w.live, m.test_clock) as clock
  from card_change c
  join subscription_planned w
    on w.merchant_id = c.merchant_id and w.live = c.live and w.id = c.subscription_id
  join merchant m on m.id = c.merchant_id
 where c.merchant_id = :merchant_id and c.live = :live and c.id = :change_id
   and c.state in ('processing', 'challenged');

-- name: replace_card(merchant_id, live, change_id, network_reference, revision, running, date_next, dunning, shop_now, now)^
-- The new card is good: the change is done and the subscription has the card, as a version over the one given, or
-- nothing happens. A subscription that ended meanwhile (running is false) keeps the card that it had. The old card's
-- number is erased, and the new one's too if there is nothing left to charge: a change that is open keeps it. What an
-- acquirer keeps of the card that is not charged by any more it is to let go of, an hour later (a charge by it may be on
-- its way), unless its customer has saved it; what is kept under the card's own reference is looked for by the card.
-- The tries that were planned for a charge that is failing stay so (:dunning, for one without a plan of its own). What is
-- paused because every try failed is due to go on.
with open as materialized (
    select *
      from card_change
     where merchant_id = :merchant_id and live = :live and id = :change_id and state in ('processing', 'challenged')
       for update
), before as materialized (
    select s.merchant_id, s.live, s.card_id, s.acquirer, s.network_reference
      from open
      join subscription s on s.merchant_id = open.merchant_id and s.live = open.live and s.id = open.subscription_id
), moved as (
    update subscription s
       set card_id = open.card_id, acquirer = open.acquirer, network_reference = :network_reference,
           date_next = :date_next, dunning = coalesce(s.dunning, :dunning::jsonb), revision = s.revision + 1
      from open
     where s.merchant_id = open.merchant_id and s.live = open.live and s.id = open.subscription_id
       and s.revision = :revision and s.state in ('Trial', 'Active') and :running
 returning s.merchant_id, s.live, s.id, s.change_id, s.date_next is not null or s.change_id is not null as is_charged
), resumed as (
    update subscription_change c
       set due_at = :shop_now
      from moved
     where c.merchant_id = moved.merchant_id and c.live = moved.live and c.id = moved.change_id and c.state = 'open'
       and c.type = 'resume' and c.asked_by = 'retries'
), done as (
    update card_change c
       set state = 'approved', network_reference = :network_reference, finished_at = :now, lookup_at = null,
           leased_until = null
      from open
     where c.merchant_id = open.merchant_id and c.id = open.id and (exists (select from moved) or not :running)
 returning c.merchant_id, c.live, c.id, c.card_id
), card_forgotten as (
    update card c
       set number_sealed = null, erased_at = :now
      from (select before.merchant_id, before.live, before.card_id from before cross join done
             union all
            select merchant_id, live, card_id from done
             where not exists (select from moved where is_charged)) over
     where c.merchant_id = over.merchant_id and c.live = over.live and c.id = over.card_id
       and c.number_sealed is not null
), let_go as (
    insert into kept_release (merchant_id, live, acquirer, reference, asked_at, due_at)
    select over.merchant_id, over.live, over.acquirer, over.network_reference, clock_timestamp(),
           clock_timestamp() + interval '1 hour'
      from (select before.* from before cross join moved
             union all
            select merchant_id, live, card_id, acquirer, :network_reference::text from open
             where exists (select from done) and not exists (select from moved)) over
     where over.acquirer <> '' and over.network_reference <> ''
       and not exists (select from card c
                        where c.merchant_id = over.merchant_id and c.id = over.card_id
                          and c.stored_reference = over.network_reference)
       and not exists (select from saved_instrument s
                        where s.merchant_id = over.merchant_id and s.card_id = over.card_id and s.removed_at is null)
        on conflict do nothing
)
select id from done;

-- name: end_card_change(merchant_id, live, change_id, state, reason, lookup_at, now)^
-- A change ends and the old card stays: 'declined', 'failed' (the acquirer never saw it) or 'abandoned'. The new one's
-- number is erased. A page that was left and could not be ended is still looked at: something may be chosen there.
with ended as (
    update card_change
       set state = :state, decline_reason = :reason, finished_at = :now, lookup_at = :lookup_at, lookups = 0,
           leased_until = null
     where merchant_id = :merchant_id and live = :live and id = :change_id and state in ('processing', 'challenged')
 returning merchant_id, live, id, card_id
), card_forgotten as (
    update card c
       set number_sealed = null, erased_at = :now
      from ended
     where c.merchant_id = ended.merchant_id and c.live = ended.live and c.id = ended.card_id
       and c.number_sealed is not null
)
select id from ended;

-- name: let_go_of_chosen(merchant_id, live, change_id, kept)!
-- A page that was left is over: nobody looks at it any more, and what its acquirer has kept of it is let go of, since nobody
-- agreed to that. (What is kept that a card has, others may be charged by.)
with over as (
    update card_change
       set lookup_at = null, leased_until = null
     where merchant_id = :merchant_id and live = :live and id = :change_id and state = 'abandoned'
       and lookup_at is not null
 returning merchant_id, live, acquirer
)
insert into kept_release (merchant_id, live, acquirer, reference, asked_at, due_at)
select o.merchant_id, o.live, o.acquirer, :kept, clock_timestamp(), clock_timestamp()
  from over o
 where :kept <> ''
   and not exists (select from card c
                    where c.merchant_id = o.merchant_id and c.acquirer = o.acquirer and c.stored_reference = :kept
                      and c.let_go_at is null)
    on conflict do nothing;

-- name: challenge_card_change(merchant_id, live, change_id, page_reference, challenge_url, lookup_at)^
-- The bank, or the acquirer's page, wants to see the customer; the change waits for the answer.
update card_change
   set state = 'challenged', page_reference = :page_reference, challenge_url = :challenge_url, lookup_at = :lookup_at, lookups = 0, leased_until = null
 where merchant_id = :merchant_id and live = :live and id = :change_id and state = 'processing'
returning id;

-- name: claim_card_changes(now, most, lease)
-- Changes whose fate the acquirer must be asked for, each taken by one janitor under a lease in database time.
with due as materialized (
    select merchant_id, id
      from card_change
     where lookup_at <= :now and (leased_until is null or leased_until < clock_timestamp())
       and not (live and (select copied_at is not null from deployment))
       and coalesce(merchant_id <> all (array(select merchant_id from merchant_fence)), true)
     order by lookup_at
     limit :most
       for update skip locked
)
update card_change c
   set leased_until = clock_timestamp() + :lease::interval, lookups = c.lookups + 1, page_looked_at = :now
  from due
 where c.merchant_id = due.merchant_id and c.id = due.id
returning c.merchant_id, c.live, c.id, c.state, c.idempotency_key, c.acquirer, c.not_after, c.challenge_url, c.created_at,
          c.lookups, c.alerted_at, c.lookup_at, c.page_reference, c.page_currency, c.page_ends_at;

-- name: schedule_card_change(merchant_id, live, change_id, state, claimed_at, lookup_at, alerted_at)!
-- Nothing new was learnt: ask again later. A change that somebody else moved meanwhile has its next date from there, and
-- one that was hurried while it was asked for is asked for again.
update card_change
   set lookup_at = case when lookup_at = :claimed_at then :lookup_at else lookup_at end, leased_until = null, alerted_at = coalesce(alerted_at, :alerted_at)
 where merchant_id = :merchant_id and live = :live and id = :change_id and state = :state;
