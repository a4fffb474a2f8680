-- name: ask(merchant_id, live, cards, attempts, subscriptions, changes)!
-- All that acquirers keep for a customer who is erased: the instruments of their pages, and cards that they keep since a
-- first payment. Of what an account keeps nothing for, it has nothing to do.
insert into kept_release (merchant_id, live, acquirer, reference, asked_at, due_at)
select :merchant_id, :live, k.acquirer, k.reference, clock_timestamp(), clock_timestamp()
  from (
      select acquirer, stored_reference as reference
        from card
       where merchant_id = :merchant_id and live = :live and id = any(:cards::bigint[])
       union
      select acquirer, network_reference
        from payment_attempt
       where merchant_id = :merchant_id and live = :live and id = any(:attempts::bigint[])
       union
      select acquirer, network_reference
        from subscription
       where merchant_id = :merchant_id and live = :live and id = any(:subscriptions::bigint[])
       union
      select acquirer, network_reference
        from card_change
       where merchant_id = :merchant_id and live = :live and id = any(:changes::bigint[])
  ) k
 where k.acquirer <> '' and k.reference <> ''
    on conflict do nothing;

-- name: ask_unneeded(now, most)$
-- Cards that acquirers keep, and that nothing is charged by any more: no subscription that runs, is paused or may yet be
-- kept, none that an open outcome may begin, no charge that its bank takes days over, and no customer who has saved them. Their rows stay, with what they show.
with spare as materialized (
    select c.merchant_id, c.live, c.id, c.acquirer, c.stored_reference
      from card c
     where c.stored_reference <> '' and c.let_go_at is null
       and coalesce(c.merchant_id <> all (array(select merchant_id from merchant_fence)), true)
       and not exists (select from saved_instrument s
                        where s.merchant_id = c.merchant_id and s.card_id = c.id and s.removed_at is null)
       and not exists (select from payments_with_card(c.merchant_id, c.live, c.id) own
                         join payment p on p.merchant_id = c.merchant_id and p.live = c.live and p.id = own.payment_id
                         left join subscription n
                           on n.merchant_id = p.merchant_id and n.live = p.live and n.init_payment_id = p.id
                          and n.card_id = c.id
                        where (p.state in ('processing', 'challenged', 'pending')
                               or n.date_next is not null or n.change_id is not null))
       and not exists (select from payment p
                        where p.merchant_id = c.merchant_id and p.live = c.live and p.rare_state = 'pending'
                          and p.card_id = c.id)
       and not exists (select from card_change h
                         join subscription n
                           on n.merchant_id = h.merchant_id and n.live = h.live and n.id = h.subscription_id
                        where h.merchant_id = c.merchant_id and h.live = c.live and h.card_id = c.id
                          and (h.state in ('processing', 'challenged')
                               or n.card_id = c.id and (n.date_next is not null or n.change_id is not null)))
     limit :most
       for update of c skip locked
), let_go as (
    update card c
       set let_go_at = :now
      from spare
     where c.merchant_id = spare.merchant_id and c.id = spare.id
), asked as (
    insert into kept_release (merchant_id, live, acquirer, reference, asked_at, due_at)
    select merchant_id, live, acquirer, stored_reference, clock_timestamp(), clock_timestamp()
      from spare
     where acquirer <> ''
        on conflict do nothing
)
select count(*) from spare;

-- name: ask_ended(most)$
-- What acquirers keep of cards that were typed here, for subscriptions that have ended: by the first payment, and by each
-- change of the card. (What is kept under a card's own reference may serve others, too: that is looked for by the card.)
-- What their customer has saved by the first payment stays; it goes with that. The subscription's own reference goes with
-- the asking, so that it is asked once.
with over as materialized (
    select n.merchant_id, n.live, n.id, n.init_payment_id, n.card_id, n.acquirer, n.network_reference
      from subscription n
     where n.network_reference <> '' and n.date_next is null and n.state in ('Cancelled', 'Expired')
       and n.change_id is null
       and coalesce(n.merchant_id <> all (array(select merchant_id from merchant_fence)), true)
       and not exists (select from card_change h
                        where h.merchant_id = n.merchant_id and h.live = n.live and h.subscription_id = n.id
                          and h.state in ('processing', 'challenged'))
     limit :most
       for update of n skip locked
), forgotten as (
    update subscription n
       set network_reference = ''
      from over
     where n.merchant_id = over.merchant_id and n.live = over.live and n.id = over.id
), asked as (
    insert into kept_release (merchant_id, live, acquirer, reference, asked_at, due_at)
    select distinct k.merchant_id, k.live, k.acquirer, k.reference, clock_timestamp(), clock_timestamp()
      from (
          select merchant_id, live, card_id, acquirer, network_reference as reference from over
           union all
          select a.merchant_id, a.live, p.card_id, a.acquirer, a.network_reference
            from over o
            join payment p on p.merchant_id = o.merchant_id and p.live = o.live and p.id = o.init_payment_id
            join payment_attempt a on a.merchant_id = p.merchant_id and a.live = p.live and a.id = p.attempt_id
           union all
          select h.merchant_id, h.live, h.card_id, h.acquirer, h.network_reference
            from over o
            join card_change h
              on h.merchant_id = o.merchant_id and h.live = o.live and h.subscription_id = o.id
             and h.state = 'approved'
      ) k
     where k.acquirer <> '' and k.reference <> ''
       and not exists (select from card c
                        where c.merchant_id = k.merchant_id and c.id = k.card_id and c.stored_reference = k.reference)
       and not exists (select from saved_instrument s
                         join payment_attempt a on a.merchant_id = s.merchant_id and a.id = s.attempt_id
                        where s.merchant_id = k.merchant_id and s.card_id = k.card_id and s.removed_at is null
                          and a.network_reference = k.reference)
        on conflict do nothing
)
select count(*) from over;

-- name: claim_releases(lease, most)
-- What is due, taken by one worker under a lease in database time; nothing live in a copy for staging.
update kept_release r
   set leased_until = clock_timestamp() + :lease::interval, tries = r.tries + 1
  from (
      select merchant_id, live, acquirer, reference
        from kept_release
       where due_at <= clock_timestamp() and (leased_until is null or leased_until < clock_timestamp())
         and not (live and (select copied_at is not null from deployment))
         and coalesce(merchant_id <> all (array(select merchant_id from merchant_fence)), true)
       order by due_at
       limit :most
         for update skip locked
  ) due
 where r.merchant_id = due.merchant_id and r.live = due.live and r.acquirer = due.acquirer
   and r.reference = due.reference
returning r.merchant_id, r.live, r.acquirer, r.reference, r.tries;

-- name: release_made(merchant_id, live, acquirer, reference)!
delete from kept_release
 where merchant_id = :merchant_id and live = :live and acquirer = :acquirer and reference = :reference;

-- name: release_later(merchant_id, live, acquirer, reference, pause)!
update kept_release
   set due_at = clock_timestamp() + :pause::interval, leased_until = null
 where merchant_id = :merchant_id and live = :live and acquirer = :acquirer and reference = :reference;
