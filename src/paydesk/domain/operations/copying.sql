-- name: is_a_copy()$
select copied_at is not null from deployment;

-- name: workers_alive(silent)$
-- How many workers were heard of so short a time ago, by the database's clock.
select count(*) from worker_seen where seen_at > clock_timestamp() - :silent::interval;

-- name: declare_copy(reason, why_unsent)^
-- The database is another deployment's copy from now on. What waited in it is not sent, and merchants that are live can't
-- take payments. A hold that the deployment was under ends: it has no live money to keep. One that was declared before stays
-- as it is.
with copied as (
    update deployment
       set tag = replace(gen_random_uuid()::text, '-', ''), copied_at = clock_timestamp()
     where copied_at is null
 returning tag, copied_at
), pingbacks as (
    update pingback p
       set state = 'muted', leased_until = null
      from copied
     where p.state = 'due'
 returning p.id
), mails as (
    update mail m
       set state = 'failed', leased_until = null, last_error = :why_unsent, facts = m.facts - 'token'
      from copied
     where m.state = 'due'
 returning m.id
), merchants as (
    update merchant m
       set suspended_at = coalesce(m.suspended_at, copied_at), suspended_reason = :reason
      from copied
     where m.went_live_at is not null
 returning m.id
), let_go as (
    update history
       set held_at = null, held_because = '', held_since = null, looking_until = null
      from copied
 returning number
), gone as (
    update acquirer_lost l
       set gone_at = copied_at, gone_because = 'a copy takes no live payments'
      from copied
     where l.gone_at is null
), settled as (
    update alarm a
       set settled_at = copied_at, settled_by = 'a copy holds nothing'
      from copied
     where a.kind = 'held' and a.settled_at is null
)
select coalesce(c.tag, d.tag) as tag, c.tag is not null as declared, (select count(*) from pingbacks) as pingbacks,
       (select count(*) from mails) as mails, (select count(*) from merchants) as merchants
  from deployment d
  left join copied c on true;
