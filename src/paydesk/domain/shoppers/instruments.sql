-- name: save_instrument(merchant_id, live, shopper_id, card_id, attempt_id, acquirer, keep_wording, charge_wording, charge_for, charge_limit, charge_currency, authenticated, now)$
-- Within the transaction that commits the intent of the payment. It is of use once that is approved; what comes to
-- nothing erases the number itself (record_declines). authenticated is null where the card was typed here, and becomes true
-- once an acquirer says so of its page. Who is being erased is waited for.
insert into saved_instrument (merchant_id, live, shopper_id, card_id, attempt_id, acquirer, keep_wording,
                              keep_agreed_at, charge_wording, charge_agreed_at, charge_for, charge_limit,
                              charge_currency, authenticated, created_at, used_at)
select u.merchant_id, u.live, u.id, :card_id, :attempt_id, :acquirer, :keep_wording,
       case when :keep_wording <> '' then :now::timestamptz end, :charge_wording,
       case when :charge_wording <> '' then :now::timestamptz end, :charge_for, :charge_limit::numeric,
       :charge_currency, :authenticated::boolean, :now, :now
  from (select merchant_id, live, id
          from shopper
         where merchant_id = :merchant_id and live = :live and id = :shopper_id and erased_at is null
           for share) u
returning id;

-- name: agreed_at(merchant_id, live, attempt_id)^
select shopper_id, keep_wording, charge_wording
  from saved_instrument
 where merchant_id = :merchant_id and live = :live and attempt_id = :attempt_id;

-- name: hold_saved(merchant_id, live, id)$
-- Nobody removes a card, and nobody erases its customer, between the look at it and the payment that begins.
select id
  from saved_instrument
 where merchant_id = :merchant_id and live = :live and id = :id and removed_at is null
   for share;

-- name: saved_by(merchant_id, live, shopper_id)
-- The cards that a shopper has saved, the newest first; one that was saved again stands once, with all that the shop may
-- charge it for.
with each as materialized (
    select s.id, s.shopper_id, s.keep_wording, s.keep_agreed_at, c.brand, c.last4, c.exp_month, c.exp_year,
           case when c.number_sealed is null then c.acquirer else '' end as kept_at,
           case when s.charge_revoked_at is null then s.charge_wording else '' end as charge_wording, s.charge_agreed_at
      from saved_instrument s
      join payment_attempt a
        on a.merchant_id = s.merchant_id and a.live = s.live and a.id = s.attempt_id and a.state = 'approved'
      join card c
        on c.merchant_id = s.merchant_id and c.live = s.live and c.id = s.card_id
       and (c.number_sealed is not null or c.stored_reference <> '')
     where s.merchant_id = :merchant_id and s.live = :live and s.shopper_id = :shopper_id and s.removed_at is null
), newest as (
    select distinct on (brand, last4, exp_month, exp_year, kept_at)
           id, shopper_id, keep_wording, keep_agreed_at, brand, last4, exp_month, exp_year, kept_at
      from each
     order by brand, last4, exp_month, exp_year, kept_at, keep_wording <> '' desc, id desc
), agreed as (
    select brand, last4, exp_month, exp_year, charge_wording as wording, max(charge_agreed_at) as at
      from each
     where charge_wording <> ''
     group by brand, last4, exp_month, exp_year, charge_wording
)
select n.*,
       array(select wording from agreed g
              where (g.brand, g.last4, g.exp_month, g.exp_year) = (n.brand, n.last4, n.exp_month, n.exp_year)
              order by at desc, wording) as charge_wordings,
       array(select at from agreed g
              where (g.brand, g.last4, g.exp_month, g.exp_year) = (n.brand, n.last4, n.exp_month, n.exp_year)
              order by at desc, wording) as charges_agreed_at
  from newest n
 order by id desc;

-- name: to_pay_with(merchant_id, live, shopper_id, id, now)^
-- A card as its own shopper pays with it, who agreed to find it again: its number, sealed, and what was typed with it; or
-- what its acquirer keeps it under.
select s.id, c.id as card_id, c.number_sealed, c.vault_key_id, c.brand, c.last4, c.exp_month, c.exp_year, c.holder,
       u.country, c.acquirer, c.stored_reference
  from saved_instrument s
  join payment_attempt a
    on a.merchant_id = s.merchant_id and a.live = s.live and a.id = s.attempt_id and a.state = 'approved'
  join payment p on p.merchant_id = a.merchant_id and p.live = a.live and p.id = a.payment_id
  join customer u on u.merchant_id = p.merchant_id and u.live = p.live and u.id = p.customer_id
  join card c
    on c.merchant_id = s.merchant_id and c.live = s.live and c.id = s.card_id
   and (c.number_sealed is not null or c.stored_reference <> '') and c.refused_as = ''
 where s.merchant_id = :merchant_id and s.live = :live and s.shopper_id = :shopper_id and s.id = :id
   and s.removed_at is null and s.keep_wording <> ''
   and (c.exp_year = 0
        or (c.exp_year, c.exp_month) >= (extract(year from :now::timestamptz at time zone 'UTC'),
                                         extract(month from :now::timestamptz at time zone 'UTC')));

-- name: mark_used(merchant_id, live, id, now)!
update saved_instrument
   set used_at = greatest(used_at, :now)
 where merchant_id = :merchant_id and live = :live and id = :id;

-- name: remove(merchant_id, live, shopper_id, id, now)$
-- A shopper takes a card away, with all that stand for the same one; its number is erased at once, and what an acquirer
-- keeps of it is to be let go of, unless a subscription runs by it, or may yet.
with one as (
    select c.brand, c.last4, c.exp_month, c.exp_year
      from saved_instrument s
      join card c on c.merchant_id = s.merchant_id and c.live = s.live and c.id = s.card_id
     where s.merchant_id = :merchant_id and s.live = :live and s.shopper_id = :shopper_id and s.id = :id
       and s.removed_at is null
), removed as (
    update saved_instrument s
       set removed_at = :now
      from card c, one
     where s.merchant_id = :merchant_id and s.live = :live and s.shopper_id = :shopper_id and s.removed_at is null
       and c.merchant_id = s.merchant_id and c.live = s.live and c.id = s.card_id
       and (c.brand, c.last4, c.exp_month, c.exp_year) = (one.brand, one.last4, one.exp_month, one.exp_year)
 returning s.merchant_id, s.live, s.id, s.card_id
), forgotten as (
    update card c
       set number_sealed = null, erased_at = :now
      from removed
     where c.merchant_id = removed.merchant_id and c.live = removed.live and c.id = removed.card_id
       and c.number_sealed is not null
), kept as (
    insert into kept_release (merchant_id, live, acquirer, reference, asked_at, due_at)
    select distinct r.merchant_id, r.live, k.acquirer, k.reference, clock_timestamp(), clock_timestamp()
      from removed r
      join saved_instrument s on s.merchant_id = r.merchant_id and s.id = r.id
      join payment_attempt a on a.merchant_id = s.merchant_id and a.live = s.live and a.id = s.attempt_id
      join card c on c.merchant_id = s.merchant_id and c.live = s.live and c.id = s.card_id
     cross join lateral (values (c.acquirer, c.stored_reference), (a.acquirer, a.network_reference))
                    as k (acquirer, reference)
     where k.acquirer <> '' and k.reference <> ''
       and not exists (select from subscription n
                        where n.merchant_id = s.merchant_id and n.live = s.live
                          and (n.date_next is not null or n.change_id is not null)
                          and (n.card_id = s.card_id or n.network_reference = a.network_reference))
        on conflict do nothing
)
select count(*) from removed;

-- name: remove_unneeded(unused_since, now, most)$
-- Cards whose purpose is over: not used for too long, past their last month, never paid with, or not kept by the acquirer
-- on whose page the customer has paid in another way. Times of a test side are
-- its own, which runs ahead: it keeps them the longer.
with over as materialized (
    select s.merchant_id, s.live, s.id, s.card_id
      from saved_instrument s
      join card c on c.merchant_id = s.merchant_id and c.live = s.live and c.id = s.card_id
      left join payment_attempt a on a.merchant_id = s.merchant_id and a.live = s.live and a.id = s.attempt_id
     where s.removed_at is null and coalesce(s.merchant_id <> all (array(select merchant_id from merchant_fence)), true)
       and (s.used_at < :unused_since
            or c.number_sealed is null and c.stored_reference = ''
               and coalesce(a.state, '') not in ('processing', 'challenged', 'pending')
            or a.state in ('declined', 'failed', 'abandoned', 'voiding', 'voided')
            or c.exp_year > 0
               and (c.exp_year, c.exp_month) < (extract(year from :now::timestamptz at time zone 'UTC'),
                                            extract(month from :now::timestamptz at time zone 'UTC')))
     limit :most
       for update of s skip locked
), removed as (
    update saved_instrument s
       set removed_at = :now
      from over
     where s.merchant_id = over.merchant_id and s.id = over.id
), forgotten as (
    update card c
       set number_sealed = null, erased_at = :now
      from over
     where c.merchant_id = over.merchant_id and c.id = over.card_id and c.number_sealed is not null
), kept as (
    insert into kept_release (merchant_id, live, acquirer, reference, asked_at, due_at)
    select distinct r.merchant_id, r.live, k.acquirer, k.reference, clock_timestamp(), clock_timestamp()
      from over r
      join saved_instrument s on s.merchant_id = r.merchant_id and s.id = r.id
      join payment_attempt a on a.merchant_id = s.merchant_id and a.live = s.live and a.id = s.attempt_id
      join card c on c.merchant_id = s.merchant_id and c.live = s.live and c.id = s.card_id
     cross join lateral (values (c.acquirer, c.stored_reference), (a.acquirer, a.network_reference))
                    as k (acquirer, reference)
     where k.acquirer <> '' and k.reference <> ''
       and not exists (select from subscription n
                        where n.merchant_id = s.merchant_id and n.live = s.live
                          and (n.date_next is not null or n.change_id is not null)
                          and (n.card_id = s.card_id or n.network_reference = a.network_reference))
        on conflict do nothing
)
select count(*) from over;

-- name: take_back(merchant_id, live, shopper_id, id, now)$
-- Its shop may not charge a card without its customer any more, nor any that stands for the same one. What was kept for
-- nothing else is forgotten.
with one as (
    select c.brand, c.last4, c.exp_month, c.exp_year
      from saved_instrument s
      join card c on c.merchant_id = s.merchant_id and c.live = s.live and c.id = s.card_id
     where s.merchant_id = :merchant_id and s.live = :live and s.shopper_id = :shopper_id and s.id = :id
       and s.removed_at is null
), revoked as (
    update saved_instrument s
       set charge_revoked_at = :now, removed_at = case when s.keep_wording = '' then :now::timestamptz end
      from card c, one
     where s.merchant_id = :merchant_id and s.live = :live and s.shopper_id = :shopper_id and s.removed_at is null
       and s.charge_wording <> '' and s.charge_revoked_at is null
       and c.merchant_id = s.merchant_id and c.live = s.live and c.id = s.card_id
       and (c.brand, c.last4, c.exp_month, c.exp_year) = (one.brand, one.last4, one.exp_month, one.exp_year)
 returning s.merchant_id, s.live, s.id, s.card_id, s.keep_wording
), forgotten as (
    update card c
       set number_sealed = null, erased_at = :now
      from revoked
     where revoked.keep_wording = '' and c.merchant_id = revoked.merchant_id and c.live = revoked.live
       and c.id = revoked.card_id and c.number_sealed is not null
), kept as (
    insert into kept_release (merchant_id, live, acquirer, reference, asked_at, due_at)
    select distinct r.merchant_id, r.live, k.acquirer, k.reference, clock_timestamp(), clock_timestamp()
      from revoked r
      join saved_instrument s on s.merchant_id = r.merchant_id and s.id = r.id
      join payment_attempt a on a.merchant_id = s.merchant_id and a.live = s.live and a.id = s.attempt_id
      join card c on c.merchant_id = s.merchant_id and c.live = s.live and c.id = s.card_id
     cross join lateral (values (c.acquirer, c.stored_reference), (a.acquirer, a.network_reference))
                    as k (acquirer, reference)
     where r.keep_wording = '' and k.acquirer <> '' and k.reference <> ''
       and not exists (select from subscription n
                        where n.merchant_id = s.merchant_id and n.live = s.live
                          and (n.date_next is not null or n.change_id is not null)
                          and (n.card_id = s.card_id or n.network_reference = a.network_reference))
        on conflict do nothing
)
select count(*) from revoked;
