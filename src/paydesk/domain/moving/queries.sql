-- name: columns_of(tables)
-- The columns of tables as they stand, but for what the database makes of the others, and those of their primary keys.
select c.relname as table, array_agg(a.attname::text order by a.attname) as columns,
       array_agg(a.attname::text order by a.attname) filter (where a.attnum = any(i.indkey)) as keys
  from pg_class c
  join pg_attribute a on a.attrelid = c.oid
  join pg_index i on i.indrelid = c.oid and i.indisprimary
 where c.relnamespace = 'public'::regnamespace and c.relname = any(:tables::text[]) and a.attnum > 0
   and not a.attisdropped and a.attgenerated = ''
 group by c.relname;

-- name: names_of_accounts(merchant_id)$
select coalesce(array_agg(name order by name), '{}') from acquirer_account where for_merchant_id = :merchant_id;

-- name: snapshot(copied_of, copied_below)^
-- What the transaction sees, and whether what has changed since another snapshot can be told from it: that was of this very
-- database, whose history has not gone back since, and fewer transactions ago than half of the numbers that rows know.
with now as materialized (
    select server_place() || '/' || (select oid from pg_database where datname = current_database()) as place,
           pg_snapshot_xmin(pg_current_snapshot()) as below, pg_snapshot_xmax(pg_current_snapshot()) as newest,
           pg_current_wal_lsn()::text as lsn
)
select place, below::text as below, lsn,
       coalesce(place = :copied_of::text
                and newest::text::numeric - :copied_below::text::numeric between 0 and 2000000000, false) as follows
  from now;

-- name: steps()$
-- Which steps the schema has had.
select array_agg(number order by number) from schema_migration;

-- name: deployment()^
select cell, copied_at is not null as is_a_copy from deployment;

-- name: is_there(merchant_id)$
select exists (select from merchant where id = :merchant_id);

-- name: test_generation(merchant_id)$
select test_generation from merchant where id = :merchant_id;

-- name: live_accounts(merchant_id)
-- The accounts that have, or may have, live money of the merchant's, or cards by which it is charged, whose they are, and
-- whether they are asked for anything still.
select u.name, coalesce(o.own_id, '') as own_id, a.name is null and l.account is null as is_asked
  from (select acquirer as name from payment_attempt where merchant_id = :merchant_id and live
         union
        select acquirer from movement where merchant_id = :merchant_id and live
         union
        select acquirer from card where merchant_id = :merchant_id and live
         union
        select acquirer from card_change where merchant_id = :merchant_id and live
         union
        select acquirer from subscription where merchant_id = :merchant_id and live
         union
        select acquirer from chargeback where merchant_id = :merchant_id and live
         union
        select acquirer from kept_release where merchant_id = :merchant_id and live) u
  left join acquirer_own_id o on o.account = u.name
  left join acquirer_account a on a.name = u.name and a.gone_at is not null
  left join acquirer_lost l on l.account = u.name and not exists (select from acquirer_account n where n.name = u.name)
 where u.name <> ''
 order by u.name;

-- name: known_accounts(names)
-- Whose accounts of these names are here, and whether they are asked for anything.
select o.account as name, o.own_id, a.name is null and l.account is null as is_asked
  from acquirer_own_id o
  left join acquirer_account a on a.name = o.account and a.gone_at is not null
  left join acquirer_lost l
    on l.account = o.account and not exists (select from acquirer_account n where n.name = o.account)
 where o.account = any(:names::text[]);

-- name: open_test_outcomes(merchant_id)$
-- How many outcomes the simulated bank has still to be asked for.
select (select count(*) from payment_attempt where merchant_id = :merchant_id and not live and lookup_at is not null)
     + (select count(*) from movement where merchant_id = :merchant_id and not live and lookup_at is not null)
     + (select count(*) from card_change where merchant_id = :merchant_id and not live and lookup_at is not null);

-- name: open_payout_files(merchant_id)$
select count(*) from payout_file_line where merchant_id = :merchant_id and open;

-- name: team(merchant_id)
-- Who belongs to the merchant, and their place in its team; nobody is an operator elsewhere, and sessions stay.
select p.id, p.email, m.role, m.created_at, p.totp_sealed, p.vault_key_id, p.email_confirmed_at is not null as proven,
       (to_jsonb(p) || jsonb_build_object('operator', false, 'totp_session', null))::text as person
  from membership m
  join person p on p.id = m.person_id
 where m.merchant_id = :merchant_id
 order by p.id;

-- name: keys_of(merchant_id)
-- By what the directory leads to the merchant's keys.
select public_key, private_key_lookup from merchant_key where merchant_id = :merchant_id;

-- name: dismiss_team(merchant_id)!
delete from membership where merchant_id = :merchant_id;

-- name: known_person(id, email)$
-- Who is here by that address, else who came before and has another one here; whoever has the address keeps it until the
-- transaction ends, or a link that is followed meanwhile would let them into the team with another one.
select id
  from person
 where lower(email) = lower(:email) or id = :id
 order by lower(email) = lower(:email) desc
 limit 1
   for no key update;

-- name: unproven_other(id, email)$
-- Whose account another one's address leads to, who has never shown that it is theirs.
select id from person where lower(email) = lower(:email) and id <> :id and email_confirmed_at is null;

-- name: address_of(id)$
select email from person where id = :id;

-- name: is_used(id, merchant_id)$
-- Whether somebody uses an account here for more than this merchant: it was not just left when that went.
select exists (select
                 from person p
                where p.id = :id
                  and (p.operator
                       or exists (select from membership m where m.person_id = p.id and m.merchant_id <> :merchant_id)));

-- name: readdress(id, email)!
-- Who has another address elsewhere by now has it here, too; none, if somebody else has that here.
update person p
   set email = case when exists (select from person o where lower(o.email) = lower(:email) and o.id <> p.id)
                    then p.id || '@elsewhere.invalid' else :email end
 where p.id = :id;

-- name: add_person(person, totp_sealed, vault_key_id)!
insert into person (id, email, name, password_hash, email_confirmed_at, totp_sealed, vault_key_id, totp_confirmed_at,
                    totp_step, recovery_codes, operator, language, language_chosen, time_zone, created_at, totp_session)
select id, email, name, password_hash, email_confirmed_at, :totp_sealed::bytea, :vault_key_id::text, totp_confirmed_at,
       totp_step, recovery_codes, operator, language, language_chosen, time_zone, created_at, totp_session
  from jsonb_populate_record(null::person, :person::jsonb);

-- name: renew_person(person, totp_sealed, vault_key_id)!
-- Whose account was left here when their only shop went: what they have changed since, where it was, holds here, too, and
-- nobody stays logged in by what held before. Who belongs to another shop here goes on with the account that they use.
with renewed as (
    update person p
       set email = n.email, name = n.name, password_hash = n.password_hash, email_confirmed_at = n.email_confirmed_at,
           totp_sealed = :totp_sealed::bytea, vault_key_id = :vault_key_id::text, totp_confirmed_at = n.totp_confirmed_at,
           totp_step = n.totp_step, recovery_codes = n.recovery_codes, language = n.language,
           language_chosen = n.language_chosen, time_zone = n.time_zone, totp_session = null
      from jsonb_populate_record(null::person, :person::jsonb) n
     where p.id = n.id and not p.operator and not exists (select from membership m where m.person_id = p.id)
 returning p.id
), sessions as (
    delete from account_session where person_id in (select id from renewed)
), devices as (
    delete from person_device where person_id in (select id from renewed)
)
delete from person_token where person_id in (select id from renewed);

-- name: take_over_unproven(id, person, totp_sealed, vault_key_id)$
-- Who has opened an account here by an address that was never shown to be theirs gets into no team by it: who has shown
-- that it is theirs, elsewhere, has the account from now on, as after a link to choose a password; so has a member who has
-- not, if it is an account of nothing else. Codes to recover by hold for one account alone. Whether it was taken over.
with taken as (
    update person p
       set name = n.name, password_hash = n.password_hash, email_confirmed_at = n.email_confirmed_at,
           totp_sealed = :totp_sealed::bytea, vault_key_id = :vault_key_id::text, totp_confirmed_at = n.totp_confirmed_at,
           totp_step = n.totp_step, recovery_codes = case when n.id = p.id then n.recovery_codes else '{}' end,
           language = n.language, language_chosen = n.language_chosen, time_zone = n.time_zone, totp_session = null
      from jsonb_populate_record(null::person, :person::jsonb) n
     where p.id = :id and p.email_confirmed_at is null and not p.operator
       and (n.email_confirmed_at is not null
            or (p.id <> n.id and not exists (select from membership m where m.person_id = p.id)))
 returning p.id
), sessions as (
    delete from account_session where person_id in (select id from taken)
), devices as (
    delete from person_device where person_id in (select id from taken)
), tokens as (
    delete from person_token where person_id in (select id from taken)
)
select exists (select from taken);

-- name: add_member(merchant_id, person_id, role, created_at)!
insert into membership (merchant_id, person_id, role, created_at)
values (:merchant_id, :person_id, :role, :created_at);

-- name: sum_balances(merchant_id)!
-- The ledger of who comes is closed as far as this cell's is. Nobody closes it further before this is committed.
with horizon as materialized (
    select closed_id from ledger_horizon for update
)
insert into balance_closing (merchant_id, live, currency, account, amount)
select e.merchant_id, true, e.currency, e.account, sum(e.amount)
  from horizon
  join ledger_entry e on e.merchant_id = :merchant_id and e.live and e.id <= horizon.closed_id
 where e.account in ('pending', 'available', 'reserve')
 group by e.merchant_id, e.currency, e.account;

-- name: sum_sales(merchant_id)!
-- And so are its sales, and those of all.
with closed as materialized (
    select closed_until from sales_closing for update
), summed as materialized (
    select s.begins_at, s.currency, sum(s.successful) as successful, sum(s.volume) as volume, sum(s.failed) as failed,
           sum(s.refunds) as refunds, sum(s.refunded) as refunded
      from closed
      join payment_sold s on s.merchant_id = :merchant_id and s.live and s.created_at < closed.closed_until
     group by s.begins_at, s.currency
), quarters as (
    insert into sales_quarter (merchant_id, live, begins_at, currency, successful, volume, failed, refunds, refunded)
    select :merchant_id, true, begins_at, currency, successful, volume, failed, refunds, refunded
      from summed
), days as (
    insert into sales_day (merchant_id, live, day, currency, successful, volume, failed, refunds, refunded)
    select :merchant_id, true, (begins_at at time zone 'UTC')::date, currency, sum(successful), sum(volume), sum(failed),
           sum(refunds), sum(refunded)
      from summed
     group by (begins_at at time zone 'UTC')::date, currency
)
insert into sales_of_all as a (live, day, currency, successful, volume, failed, refunds, refunded)
select true, (begins_at at time zone 'UTC')::date, currency, sum(successful), sum(volume), sum(failed), sum(refunds),
       sum(refunded)
  from summed
 group by (begins_at at time zone 'UTC')::date, currency
 order by 2, 3
    on conflict (live, day, currency) do update
       set successful = a.successful + excluded.successful, volume = a.volume + excluded.volume,
           failed = a.failed + excluded.failed, refunds = a.refunds + excluded.refunds,
           refunded = a.refunded + excluded.refunded;

-- name: forget_sums(merchant_id)!
-- What a merchant's sales are in the sums of all goes with its own. Nobody sums anything before this is committed.
with horizon as materialized (
    select closed_id from ledger_horizon for update
), closed as materialized (
    select closed_until from sales_closing for update
), balances as (
    delete from balance_closing where merchant_id = :merchant_id and exists (select from horizon)
), changes as (
    delete from sales_change where merchant_id = :merchant_id and exists (select from closed)
), quarters as (
    delete from sales_quarter where merchant_id = :merchant_id and exists (select from closed)
), days as (
    delete from sales_day where merchant_id = :merchant_id and exists (select from closed)
 returning *
)
update sales_of_all a
   set successful = a.successful - d.successful, volume = a.volume - d.volume, failed = a.failed - d.failed,
       refunds = a.refunds - d.refunds, refunded = a.refunded - d.refunded
  from days d
 where a.live = d.live and a.day = d.day and a.currency = d.currency;

-- name: drop_people(ids, merchant_id)!
-- People who were made for a merchant's team go with it, unless they belong to somebody else by now.
delete from person p
 where p.id = any(:ids::bigint[]) and not p.operator
   and not exists (select from membership m where m.person_id = p.id and m.merchant_id <> :merchant_id);

-- name: end_sessions(merchant_id)!
-- Who looked at the merchant here looks at nothing until they choose another of their shops, or log in there.
update account_session set merchant_id = null, live = false where merchant_id = :merchant_id;

-- name: remember_keys(merchant_id)!
-- The acquirer's list still has what was asked for from here: it must not be taken for something forgotten.
insert into forgotten_attempt (merchant_id, acquirer, idempotency_key)
select merchant_id, acquirer, idempotency_key from payment_attempt where merchant_id = :merchant_id
union
select merchant_id, acquirer, idempotency_key from card_change where merchant_id = :merchant_id
    on conflict do nothing;

-- name: keep_keys(merchant_id)!
-- Who comes back may yet stay elsewhere: what acquirers were asked for from here, when they were here before, stays known
-- while the copy comes and goes, as nobody's. A key is asked for by itself.
insert into forgotten_attempt (merchant_id, acquirer, idempotency_key)
select 0, acquirer, idempotency_key from forgotten_attempt where merchant_id = :merchant_id
    on conflict do nothing;

-- name: only_there(merchant_id)
-- Whose only shop the merchant is, and who is no operator: they have nothing to do here any more.
select p.email
  from membership m
  join person p on p.id = m.person_id and not p.operator
 where m.merchant_id = :merchant_id
   and not exists (select from membership o where o.person_id = m.person_id and o.merchant_id <> :merchant_id)
 order by p.id;
