-- name: begin_session(token_hash, person_id, expires_at, client_address, user_agent, confirmed_at, second_factor_at, now)!
-- It leads to the merchant that was looked at last, on its test side.
insert into account_session (token_hash, person_id, created_at, last_seen_at, expires_at, client_address, user_agent,
                             confirmed_at, second_factor_at, merchant_id)
values (:token_hash, :person_id, :now, :now, :expires_at, :client_address, :user_agent, :confirmed_at, :second_factor_at, (
    select merchant_id from account_session where person_id = :person_id order by last_seen_at desc, id desc limit 1));

-- name: find_session(token_hash, client_address, now, idle, operator_idle, by_itself)^
-- What may be seen follows from the membership as it is now: who was removed from a team looks at another or none. A
-- session is written down as used at most once a minute, and never by a page that asks for news by itself.
with found as (
    select s.*
      from account_session s
      join person p on p.id = s.person_id
     where s.token_hash = :token_hash and s.expires_at > :now
       and s.last_seen_at > :now::timestamptz - case when p.operator then :operator_idle::interval else :idle::interval end
), seen as (
    update account_session s
       set last_seen_at = :now, client_address = :client_address
      from found f
     where s.id = f.id and not :by_itself
       and (f.last_seen_at < :now::timestamptz - interval '1 minute' or f.client_address <> :client_address)
)
select f.id as session_id, f.created_at as session_created_at, f.last_seen_at, f.expires_at, f.confirmed_at,
       f.second_factor_at, coalesce(f.live and m.merchant_id = f.merchant_id, false) as live, m.merchant_id, coalesce(m.merchant_name, '') as merchant_name,
       coalesce(m.test_mode, true) as test_mode, m.went_live_at, m.suspended_at, coalesce(m.suspended_reason, '') as suspended_reason,
       m.role,
       p.id, p.email, p.name, p.email_confirmed_at, p.totp_confirmed_at is not null as second_factor,
       cardinality(p.recovery_codes) as codes_left, p.operator, p.language, p.language_chosen,
       p.time_zone, p.created_at
  from found f
  join person p on p.id = f.person_id
  left join lateral (
      select b.merchant_id, b.role, t.name as merchant_name, t.test_mode, t.went_live_at, t.suspended_at,
             t.suspended_reason
        from membership b
        join merchant t on t.id = b.merchant_id
       where b.person_id = f.person_id
       order by b.merchant_id is distinct from f.merchant_id, b.merchant_id
       limit 1
  ) m on true;

-- name: pass_second_factor(id, expires_at, now)!
update account_session set second_factor_at = :now, expires_at = :expires_at where id = :id;

-- name: renew_token(id, token_hash)!
update account_session set token_hash = :token_hash where id = :id;

-- name: confirm_session(id, now)!
update account_session set confirmed_at = :now where id = :id;

-- name: look_at(id, merchant_id, live)$
-- No row: not a member there.
update account_session s
   set merchant_id = b.merchant_id, live = :live
  from membership b
 where s.id = :id and b.person_id = s.person_id and b.merchant_id = :merchant_id
returning s.id;

-- name: list_sessions(person_id, own_id, now, idle)
-- The one that looks is marked.
select id, created_at, last_seen_at, client_address, user_agent, id = :own_id as current
  from account_session
 where person_id = :person_id and expires_at > :now and last_seen_at > :now::timestamptz - :idle::interval
 order by last_seen_at desc, id desc;

-- name: end_session(id, person_id)$
delete from account_session where id = :id and person_id = :person_id returning id;

-- name: end_all_sessions(person_id, but)$
with ended as (
    delete from account_session where person_id = :person_id and id <> :but returning id
)
select count(*) from ended;

-- name: forget_sessions(now, idle)!
delete from account_session where expires_at <= :now or last_seen_at <= :now::timestamptz - :idle::interval;
