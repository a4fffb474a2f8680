-- name: claim(now, most, lease, merchant_kinds, link_kinds, customer_kinds, per_address, per_team_address, per_merchant, per_person)
-- Mails that are due, each taken by one sender under a lease in database time. What a merchant itself is told is written
-- in the language of whoever logs in with that address. Nothing but a link that proves an address goes to one that is not
-- confirmed: what tells of test data or of the merchant's business goes to its team, and a recipient is empty where nobody
-- can be told. (Customers of live payments are nobody's team: whoever signs up with their address changes nothing.)
-- Each mail counts once for its day, before it is handed over: to its address (by sort: what customers get, each kind of
-- link, what a team gets), for its merchant and for who caused it; `over` says which cap it is over. A null is no cap. Counts
-- are written in one order, so that senders wait for each other and never in a circle.
with due as materialized (
    select merchant_id, id
      from mail
     where state = 'due' and due_at <= :now and (leased_until is null or leased_until < clock_timestamp())
       and coalesce(merchant_id <> all (array(select merchant_id from merchant_fence)), true)
     order by due_at
     limit :most
       for update skip locked
), taken as (
    update mail
       set leased_until = clock_timestamp() + :lease::interval, attempts = mail.attempts + 1
      from due
     where mail.merchant_id = due.merchant_id and mail.id = due.id
 returning mail.*
), counting as (
    select t.merchant_id, t.id, c.what, c.cap, sha256(convert_to(c.what || ' ' || c.whom, 'UTF8')) as subject
      from taken t
     cross join lateral (
         select case when t.kind = any(:link_kinds::text[]) then t.kind
                     when t.kind = any(:customer_kinds::text[]) then 'customer'
                     else 'team' end as sort
     ) k
     cross join lateral (values
         ('address', k.sort || ' ' || lower(t.recipient),
          case when k.sort = 'team' then :per_team_address::integer else :per_address::integer end),
         ('merchant', nullif(t.merchant_id, 0)::text, :per_merchant::integer),
         ('person', t.facts ->> 'by_person', :per_person::integer)
     ) c (what, whom, cap)
     where t.attempts = 1 and c.whom is not null and c.cap is not null
), counted as (
    insert into mail_day as d (day, subject, mails)
    select (:now::timestamptz at time zone 'UTC')::date, subject, count(*) from counting group by subject order by subject
        on conflict (day, subject) do update set mails = d.mails + excluded.mails
 returning subject, mails
), ranked as (
    select g.merchant_id, g.id, g.what, g.cap,
           n.mails - count(*) over (partition by g.subject)
               + row_number() over (partition by g.subject order by g.id) as place
      from counting g
      join counted n on n.subject = g.subject
), beyond as (
    select merchant_id, id, min(what) as what from ranked where place > cap group by merchant_id, id
)
select t.merchant_id, t.live, t.id, t.kind, r.address as recipient, t.facts, t.attempts, t.created_at,
       coalesce(p.language, t.language) as language, coalesce(m.name, '') as merchant_name,
       coalesce(m.email, '') as merchant_email,
       coalesce(b.accent, '') as accent, b.changed_at as branded_at, coalesce(b.logo_type, '') <> '' as has_logo,
       coalesce(b.dark_logo_type, '') <> '' as has_dark_logo,
       shop_imprint(t.merchant_id) as imprint, coalesce(m.time_zone, 'UTC') as time_zone, coalesce(o.what, '') as over
  from taken t
  left join beyond o on o.merchant_id = t.merchant_id and o.id = t.id
  left join merchant m on m.id = t.merchant_id
  left join branding b on b.merchant_id = t.merchant_id
  cross join lateral (
      select case when t.kind = any(:link_kinds::text[]) then t.recipient
                  when m.id is not null and (t.kind = any(:merchant_kinds::text[])
                                             or t.live is false and lower(t.recipient) = lower(m.email))
                  then mail_reach(m.id, t.recipient)
                  when t.kind = 'security_notice'
                   and exists (select from person u
                                where lower(u.email) = lower(t.recipient) and u.email_confirmed_at is null)
                  then ''
                  else t.recipient end as address
  ) r
  left join person p on lower(p.email) = lower(r.address) and t.kind = any(:merchant_kinds::text[]);

-- name: record_sent(merchant_id, id, now)!
-- The server has it: that counts whoever sent it. The token of a link is not needed any more.
update mail
   set state = 'sent', sent_at = :now, leased_until = null, last_error = '', facts = facts - 'token'
 where merchant_id = :merchant_id and id = :id and state = 'due';

-- name: record_delay(merchant_id, id, attempts, due_at, why)!
-- To be tried again, by whoever has the lease.
update mail
   set due_at = :due_at, leased_until = null, last_error = :why
 where merchant_id = :merchant_id and id = :id and state = 'due' and attempts = :attempts;

-- name: record_failure(merchant_id, id, attempts, why)!
-- Given up.
update mail
   set state = 'failed', leased_until = null, last_error = :why, facts = facts - 'token'
 where merchant_id = :merchant_id and id = :id and state = 'due' and attempts = :attempts;

-- name: forget_mails(before)!
-- What was sent or given up holds names and addresses, and is kept only for a while.
delete from mail where state <> 'due' and created_at < :before;

-- name: forget_days(before)!
delete from mail_day where day < :before;
