-- name: count_try(subject, free, now)$
-- One row back means: counted, and not locked out. Parallel tries wait for each other at the row and see the newest count.
insert into entry_pause as p (subject, tries, last_at, until)
values (:subject, 1, :now, entry_pause_until(:now, 1, :free))
    on conflict (subject) do update
   set tries = case when p.last_at < :now::timestamptz - interval '1 day' then 1 else p.tries + 1 end,
       last_at = :now,
       until = entry_pause_until(
           :now, case when p.last_at < :now::timestamptz - interval '1 day' then 1 else p.tries + 1 end, :free)
 where p.until <= :now
returning tries;

-- name: locked_until(subject, now)$
select until from entry_pause where subject = :subject and until > :now;

-- name: forgive_all(subject)!
delete from entry_pause where subject = :subject;

-- name: forgive_one(subject)!
update entry_pause set tries = greatest(tries - 1, 0), until = '-infinity' where subject = :subject;

-- name: forget_tries(before)!
delete from entry_pause where last_at < :before;

-- name: find_to_log_in(email)^
select id, email, name, password_hash, operator, totp_confirmed_at is not null as second_factor, language,
       language_chosen, email_confirmed_at
  from person
 where lower(email) = lower(:email);

-- name: add_person(email, name, password_hash, operator, language, time_zone, email_confirmed_at, now)$
-- No row: somebody has this address already.
insert into person (email, name, password_hash, operator, language, time_zone, email_confirmed_at, created_at)
values (:email, :name, :password_hash, :operator, :language, :time_zone, :email_confirmed_at, :now)
    on conflict do nothing
returning id;

-- name: password_of(person_id)$
select password_hash from person where id = :person_id;

-- name: set_password(person_id, password_hash)!
update person set password_hash = :password_hash where id = :person_id;

-- name: rehash_password(person_id, old, new)!
-- Only over the hash that was verified: a password that was changed meanwhile stays changed.
update person set password_hash = :new where id = :person_id and password_hash = :old;

-- name: change_profile(person_id, name, language, time_zone)!
-- A null leaves a value as it is; an empty language leaves it to the browser from now on.
update person
   set name = coalesce(:name::text, name),
       language = coalesce(nullif(:language::text, ''), language),
       language_chosen = coalesce(:language::text <> '', language_chosen),
       time_zone = coalesce(:time_zone::text, time_zone)
 where id = :person_id;

-- name: remember_language(person_id, language)!
-- Never over what the person chose.
update person set language = :language where id = :person_id and not language_chosen and language <> :language;

-- name: add_token(person_id, purpose, token_hash, email, expires_at, most, now)$
-- An older link to confirm an address stops working. Those to choose a password, which strangers may ask for, stay until one
-- is used, or a stranger could void the one that its person holds; no row if :most are open.
with older as (
    update person_token
       set used_at = :now
     where person_id = :person_id and purpose = :purpose and purpose = 'email' and used_at is null
)
insert into person_token (person_id, purpose, token_hash, email, created_at, expires_at)
select :person_id, :purpose, :token_hash, :email, :now, :expires_at
 where :purpose = 'email'
    or (select count(*)
          from person_token
         where person_id = :person_id and purpose = :purpose and used_at is null and expires_at > :now) < :most
returning id;

-- name: find_token(token_hash, purpose, now)^
select t.person_id, t.email, t.expires_at, p.name, p.language, p.password_hash = '' as first_password
  from person_token t
  join person p on p.id = t.person_id
 where t.token_hash = :token_hash and t.purpose = :purpose and t.used_at is null and t.expires_at > :now;

-- name: use_token(token_hash, purpose, now)^
-- Of several that use a link at once, one gets the row. The person is locked before the link, as everywhere.
with holder as materialized (
    select p.id
      from person_token t
      join person p on p.id = t.person_id
     where t.token_hash = :token_hash
       for no key update of p
)
update person_token t
   set used_at = :now
  from holder
 where t.token_hash = :token_hash and t.person_id = holder.id and t.purpose = :purpose and t.used_at is null
   and t.expires_at > :now
returning t.person_id, t.email;

-- name: end_tokens(person_id, now)!
-- Links to choose a password, and those that would take another address, which may be a stranger's wish.
update person_token t
   set used_at = :now
  from person p
 where p.id = :person_id and t.person_id = p.id and t.used_at is null
   and (t.purpose = 'reset' or lower(t.email) <> lower(p.email));

-- name: forget_tokens(before)!
delete from person_token where expires_at < :before;

-- name: set_email(person_id, email, now)^
-- The address that was before comes back with it, for the notice.
with before as (
    select id, email, name, language, email_confirmed_at from person where id = :person_id for no key update
)
update person p
   set email = :email, email_confirmed_at = :now
  from before b
 where p.id = b.id
returning b.email as email_before, b.email_confirmed_at as confirmed_before, b.name, b.language;

-- name: confirm_own_email(person_id, email, now)!
-- Whoever uses a link that went to their present address has proved it.
update person
   set email_confirmed_at = coalesce(email_confirmed_at, :now)
 where id = :person_id and lower(email) = lower(:email);

-- name: begin_second_factor(person_id, session_id, totp_sealed, vault_key_id)$
-- No row: one is set up already.
update person
   set totp_sealed = :totp_sealed, vault_key_id = :vault_key_id, totp_session = :session_id
 where id = :person_id and totp_confirmed_at is null
returning id;

-- name: second_factor_of(person_id)^
select totp_sealed, vault_key_id, totp_confirmed_at, totp_session from person where id = :person_id;

-- name: drop_begun_second_factor(person_id)!
-- Somebody else may have begun it and know its secret.
update person
   set totp_sealed = null, vault_key_id = '', totp_session = null
 where id = :person_id and totp_confirmed_at is null;

-- name: confirm_second_factor(person_id, session_id, totp_sealed, step, recovery_codes, now)$
-- Only over the secret whose code was given: another tab may have begun anew.
update person
   set totp_confirmed_at = :now, totp_step = :step, recovery_codes = :recovery_codes
 where id = :person_id and totp_session = :session_id and totp_sealed = :totp_sealed and totp_confirmed_at is null
returning id;

-- name: use_step(person_id, totp_sealed, step)$
-- A code works once: of several that bring it, and of whoever brings it again, one gets a row.
update person
   set totp_step = :step
 where id = :person_id and totp_sealed = :totp_sealed and totp_confirmed_at is not null and totp_step < :step
returning id;

-- name: use_recovery_code(person_id, code)$
-- Returns how many are left; no row for a wrong or used one.
update person
   set recovery_codes = array_remove(recovery_codes, :code::bytea)
 where id = :person_id and totp_confirmed_at is not null and :code::bytea = any(recovery_codes)
returning cardinality(recovery_codes);

-- name: set_recovery_codes(person_id, recovery_codes)$
update person
   set recovery_codes = :recovery_codes
 where id = :person_id and totp_confirmed_at is not null
returning id;

-- name: remove_second_factor(person_id)$
-- An operator's stays: it can be had no other way than by setting up a new one.
update person
   set totp_sealed = null, vault_key_id = '', totp_session = null, totp_confirmed_at = null, recovery_codes = '{}'
 where id = :person_id and totp_confirmed_at is not null and not operator
returning id;

-- name: reset_second_factor(person_id)$
-- By the command line, also an operator's, who then has to set a new one up.
update person
   set totp_sealed = null, vault_key_id = '', totp_session = null, totp_confirmed_at = null, recovery_codes = '{}'
 where id = :person_id and totp_confirmed_at is not null
returning id;

-- name: set_operator(person_id, operator)$
update person set operator = :operator where id = :person_id and operator <> :operator returning id;

-- name: list_operators()
select id, email, name, email_confirmed_at, totp_confirmed_at is not null as second_factor,
       cardinality(recovery_codes) as codes_left, operator, language, language_chosen, time_zone,
       created_at
  from person
 where operator
 order by id;
