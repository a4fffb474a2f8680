-- name: own_accounts(merchant_id)
-- The accounts at acquirers that serve this merchant alone, with what is another one in each cell beside the rest.
select a.id, a.name, a.kind, a.live, a.key_print, coalesce(o.own_id, '') as own_id, a.key_sealed, a.vault_key_id,
       a.webhook_sealed, a.webhook_key_id, a.gone_at is null as is_asked, a.asked_by, d.tag as asked_here,
       (to_jsonb(a) - '{key_sealed,vault_key_id,webhook_sealed,webhook_key_id,revision,serves_from,asked_by}'::text[])::text
           as account
  from acquirer_account a
 cross join deployment d
  left join acquirer_own_id o on o.account = a.name
 where a.for_merchant_id = :merchant_id
 order by a.id;

-- name: put_account(account, key_sealed, vault_key_id, webhook_sealed, webhook_key_id, asked_by, after)!
-- Every process here opens it (again), and has time to until it serves; of one that it had open nothing changes in that.
insert into acquirer_account as a (id, name, kind, live, for_merchant_id, currencies, address, hosts_pages, page_domain,
                                   key_sealed, vault_key_id, key_print, enabled, revision, serves_from, created_at,
                                   webhook_sealed, webhook_key_id, gone_at, gone_because, asked_by)
select id, name, kind, live, for_merchant_id, currencies, address, hosts_pages, page_domain, :key_sealed::bytea,
       :vault_key_id::text, key_print, enabled, nextval('acquirer_account_revision_seq'),
       clock_timestamp() + :after::interval, created_at, :webhook_sealed::bytea, :webhook_key_id::text, gone_at, gone_because,
       :asked_by::text[]
  from jsonb_populate_record(null::acquirer_account, :account::jsonb)
    on conflict (id) do update
       set currencies = excluded.currencies, key_sealed = excluded.key_sealed, vault_key_id = excluded.vault_key_id,
           key_print = excluded.key_print, enabled = excluded.enabled, revision = excluded.revision,
           serves_from = case when a.gone_at is null then a.serves_from else excluded.serves_from end,
           webhook_sealed = excluded.webhook_sealed, webhook_key_id = excluded.webhook_key_id, gone_at = excluded.gone_at,
           gone_because = excluded.gone_because, asked_by = excluded.asked_by;

-- name: is_there_again(names)!
-- What went from here once has come back.
delete from acquirer_lost where account = any(:names::text[]);

-- name: end_leases(merchant_id)!
-- Whoever read, or compared, the accounts elsewhere does so no more.
with own as materialized (
    select array(select name from acquirer_account where for_merchant_id = :merchant_id) as names
), disputes as (
    update dispute_reading set leased_until = null from own where acquirer = any(names)
), refunds as (
    update failed_refund_reading set leased_until = null from own where acquirer = any(names)
), balances as (
    update balance_reading set leased_until = null from own where acquirer = any(names)
)
update reconciliation set leased_until = null from own where acquirer = any(names);

-- name: drop_others(merchant_id, ids)!
delete from acquirer_account where for_merchant_id = :merchant_id and id <> all (:ids::bigint[]);

-- name: leave(merchant_id, because, moved_to)!
-- The merchant's accounts are not this cell's, but the other one's: they can't be added here. (Which one that is no fence
-- says for certain: the merchant may have left the cell that it names since.)
-- Processes remember them, so it is said that nobody misses them; their names are given to no others, and what waits for
-- somebody to read them waits there.
with gone as (
    delete from acquirer_account where for_merchant_id = :merchant_id returning *
), said as (
    insert into acquirer_lost as l (account, kind, live, own_id, gone_at, gone_because, moved_to, key_print)
    select g.name, g.kind, g.live, coalesce(o.own_id, ''), clock_timestamp(), :because::text,
           :moved_to::smallint, g.key_print
      from gone g
      left join acquirer_own_id o on o.account = g.name
        on conflict (account) do update
           set own_id = coalesce(nullif(excluded.own_id, ''), l.own_id), gone_at = excluded.gone_at,
               gone_because = excluded.gone_because, moved_to = excluded.moved_to, key_print = excluded.key_print
), forgotten as (
    delete from acquirer_own_id where account in (select name from gone)
)
delete from acquirer_turn where account in (select name from gone);

-- name: tell_anew(merchant_id)!
-- What nobody knows is told to whoever operates the cell that its account has come to.
with come as (
    select name from acquirer_account where for_merchant_id = :merchant_id
), disputes as (
    update dispute_waiting
       set alarmed_at = null
     where acquirer in (select name from come) and alarmed_at is not null
)
update failed_refund_waiting
   set alarmed_at = null
 where acquirer in (select name from come) and alarmed_at is not null;

-- name: settle_told(merchant_id, kinds, because)!
-- What an operator was told of the merchant's accounts is about nothing here, or is told anew.
update alarm l
   set settled_at = clock_timestamp(), settled_by = :because::text
  from acquirer_account a
 where a.for_merchant_id = :merchant_id and l.merchant_id = 0 and l.settled_at is null and l.kind = any(:kinds::text[])
   and (l.subject in (a.name, 'account ' || a.name) or right(l.subject, length(' at ' || a.name)) = ' at ' || a.name
        or l.kind = 'refund_unknown' and l.details ->> 'acquirer' = a.name);

-- name: seconds_until_they_serve(ids)$
-- How long it takes until all of these accounts may take payments here, by this database's clock; null if one is not here,
-- or is one that nobody opens.
select case when count(*) = cardinality(:ids::bigint[])
            then coalesce(extract(epoch from max(serves_from) - clock_timestamp()), 0)::double precision end
  from acquirer_account
 where id = any(:ids::bigint[]) and gone_at is null;

-- name: in_the_way(ids, names, kinds, prints, own_ids)
-- What other accounts here have of what comes: the name, the key (or address), or what the acquirer calls it.
with coming as materialized (
    select *
      from unnest(:ids::bigint[], :names::text[], :kinds::text[], :prints::bytea[], :own_ids::text[])
        as c (id, name, kind, key_print, own_id)
)
select c.name, 'name' as what, a.name as other
  from coming c
  join acquirer_account a on a.name = c.name and a.id <> c.id
 union
select c.name, 'name', l.account
  from coming c
  join acquirer_lost l
    on l.account = c.name and (l.kind <> c.kind or l.own_id <> '' and c.own_id <> '' and l.own_id <> c.own_id)
 union
select c.name, 'name', o.account
  from coming c
  join acquirer_own_id o on o.account = c.name and c.own_id <> '' and o.own_id <> c.own_id
 union
select c.name, 'key', a.name
  from coming c
  join acquirer_account a on a.key_print = c.key_print and a.id <> c.id and a.name <> c.name
 union
select c.name, 'key', o.account
  from coming c
  join acquirer_own_id o on o.own_id = c.own_id and o.account <> c.name
 order by 1, 2, 3;

-- name: named_by_rules(merchant_id)
-- Accounts beside the merchant's own that its rules name, and by what another cell knows them.
select distinct r.account as name, coalesce(o.own_id, '') as own_id, a.key_print
  from acquirer_rule r
  left join acquirer_own_id o on o.account = r.account
  left join acquirer_account a on a.name = r.account
 where r.for_merchant_id = :merchant_id and a.for_merchant_id is distinct from :merchant_id
 order by 1;

-- name: known_alike(names)
-- Accounts of these names that serve everybody here.
select n.name, coalesce(o.own_id, '') as own_id, a.key_print
  from unnest(:names::text[]) n (name)
  left join acquirer_own_id o on o.account = n.name
  left join acquirer_account a on a.name = n.name
 where a.for_merchant_id is null;

-- name: rules_of_all(merchant_id)
-- Rules that are not the merchant's, and name its account.
select r.id
  from acquirer_account a
  join acquirer_rule r on r.account = a.name and r.for_merchant_id is distinct from a.for_merchant_id
 where a.for_merchant_id = :merchant_id
 order by r.id;

-- name: open_differences(merchant_id)$
-- What an account's list says otherwise than our books, which nobody has settled or taken.
select count(*)
  from acquirer_account a
  join alarm l
    on l.merchant_id = 0 and l.kind = 'not_reconciled' and l.settled_at is null and l.accepted_at is null
   and right(l.subject, length(' at ' || a.name)) = ' at ' || a.name
 where a.for_merchant_id = :merchant_id;
