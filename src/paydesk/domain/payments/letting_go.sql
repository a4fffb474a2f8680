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

-- name: claim_releases(lease, most)
-- What is due, taken by one worker under a lease in database time; nothing live in a copy for staging.
update kept_release r
   set leased_until = clock_timestamp() + :lease::interval, tries = r.tries + 1
  from (
      select merchant_id, live, acquirer, reference
        from kept_release
       where due_at <= clock_timestamp() and (leased_until is null or leased_until < clock_timestamp())
         and not (live and (select copied_at is not null from deployment))
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
