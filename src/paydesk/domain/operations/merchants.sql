-- name: every_merchant(before_id, most)
-- All merchants, newest first.
select id, name, email, test_mode, went_live_at, suspended_at, created_at
  from merchant
 where id < :before_id
 order by id desc
 limit :most;

-- name: test_merchants(before_id, most)
-- Those that never went live: most of them, so that the key serves.
select id, name, email, test_mode, went_live_at, suspended_at, created_at
  from merchant
 where went_live_at is null and id < :before_id
 order by id desc
 limit :most;

-- name: live_merchants(before_id, most)
select id, name, email, test_mode, went_live_at, suspended_at, created_at
  from merchant
 where went_live_at is not null and id < :before_id
 order by id desc
 limit :most;

-- name: suspended_merchants(before_id, most)
select id, name, email, test_mode, went_live_at, suspended_at, created_at
  from merchant
 where suspended_at is not null and id < :before_id
 order by id desc
 limit :most;

-- name: search_merchants(id, prefix, key_prefix, before_id, standing, most)
-- Those with this id, whose name or address begins so, or with a public key that does; each by an index of its own.
select id, name, email, test_mode, went_live_at, suspended_at, created_at
  from merchant
 where id = any(array(
     select id from merchant where id = :id::bigint
      union
     (select id from merchant where lower(name) like lower(:prefix) and id < :before_id order by lower(name), id limit 1000)
      union
     (select id from merchant where lower(email) like lower(:prefix) and id < :before_id order by lower(email), id limit 1000)
      union
     (select merchant_id from merchant_key where public_key like :key_prefix limit 1000)))
   and id < :before_id
   and case :standing::text when 'live' then went_live_at is not null
                            when 'suspended' then suspended_at is not null
                            when 'test' then went_live_at is null
                            else true end
 order by id desc
 limit :most;

-- name: find_merchant(merchant_id)^
select m.id, m.name, m.email, m.test_mode, m.went_live_at, m.suspended_at, m.suspended_reason, m.created_at,
       m.time_zone, m.shipped_goods, m.pingback_url, m.settlement_days, m.reserve_days, f.rate, f.fixed,
       f.reserve_rate, f.fees_returned, f.chargeback_fee, b.status as profile_status,
       exists (select from profile_change c where c.merchant_id = m.id and c.status = 'waiting') as profile_change
  from merchant m
  join fee_plan f on f.merchant_id = m.id
  left join business_profile b on b.merchant_id = m.id
 where m.id = :merchant_id;

-- name: team_of(merchant_id, most)
-- Who is in the team, and when each was last seen.
select p.id, p.name, p.email, b.role, p.totp_confirmed_at is not null as second_factor,
       (select max(s.last_seen_at) from account_session s where s.person_id = p.id) as last_seen_at
  from membership b
  join person p on p.id = b.person_id
 where b.merchant_id = :merchant_id
 order by b.role = 'owner' desc, p.name, p.id
 limit :most;

-- name: suspend(merchant_id, reason, now)$
update merchant
   set suspended_at = :now, suspended_reason = :reason
 where id = :merchant_id and suspended_at is null
returning id;

-- name: hurry_pages(merchant_id, now)!
-- Live pages on which a suspended merchant's customers may pay are looked at at once, and ended.
update payment_attempt a
   set lookup_at = :now
  from hosted_page h
 where h.merchant_id = :merchant_id and h.live and h.expires_at > :now
   and a.merchant_id = h.merchant_id and a.live and a.id = h.attempt_id and a.state in ('processing', 'challenged');

-- name: resume(merchant_id)$
-- In a copy for staging nobody is let go on.
update merchant
   set suspended_at = null, suspended_reason = ''
 where id = :merchant_id and suspended_at is not null and (select copied_at is null from deployment)
returning id;

-- name: lock_terms(merchant_id)^
select m.settlement_days, m.reserve_days, f.rate, f.fixed, f.reserve_rate, f.fees_returned, f.chargeback_fee
  from merchant m
  join fee_plan f on f.merchant_id = m.id
 where m.id = :merchant_id
   for update of f;

-- name: change_terms(merchant_id, rate, fixed, reserve_rate, fees_returned, chargeback_fee, settlement_days, reserve_days)!
-- Payments carry what they were split into and the day of their settlement: only new ones change.
with planned as (
    update fee_plan
       set rate = :rate, fixed = :fixed, reserve_rate = :reserve_rate, fees_returned = :fees_returned,
           chargeback_fee = :chargeback_fee
     where merchant_id = :merchant_id
)
update merchant
   set settlement_days = :settlement_days, reserve_days = :reserve_days
 where id = :merchant_id;

-- name: other_terms(rate, fixed, reserve_rate, fees_returned, chargeback_fee, settlement_days, reserve_days, before_id, most)
-- Merchants whose terms are not these.
select m.id, m.name, m.settlement_days, m.reserve_days, f.rate, f.fixed, f.reserve_rate, f.fees_returned, f.chargeback_fee
  from fee_plan f
  join merchant m on m.id = f.merchant_id
 where (f.rate, f.fixed, f.reserve_rate, f.fees_returned, f.chargeback_fee, m.settlement_days, m.reserve_days)
       is distinct from
       (:rate::numeric, :fixed::numeric, :reserve_rate::numeric, :fees_returned::boolean, :chargeback_fee::numeric,
        :settlement_days::integer, :reserve_days::integer)
   and m.id < :before_id
 order by m.id desc
 limit :most;
