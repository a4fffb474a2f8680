-- name: known()
-- All accounts that this database knows, also those that it had forgotten and was told of.
select a.name as account, a.kind, a.live, coalesce(o.own_id, '') as own_id, a.created_at as added_at, false as is_lost
  from acquirer_account a
  left join acquirer_own_id o on o.account = a.name
 union all
select l.account, l.kind, l.live, l.own_id, l.missed_at, true
  from acquirer_lost l
 where not exists (select from acquirer_account a where a.name = l.account);

-- name: miss(accounts, kinds, lives, own_ids)!
-- What an operator has said of one before stays said.
insert into acquirer_lost (account, kind, live, own_id)
select account, kind, live, own_id
  from unnest(:accounts::text[], :kinds::text[], :lives::boolean[], :own_ids::text[]) as t (account, kind, live, own_id)
    on conflict (account) do nothing;

-- name: lost()
select l.account, l.kind, l.live, l.own_id
  from acquirer_lost l
 where l.gone_at is null and not exists (select from acquirer_account a where a.name = l.account)
 order by l.account;

-- name: say_gone(account, because)$
update acquirer_lost l
   set gone_at = clock_timestamp(), gone_because = :because
 where l.account = :account and l.gone_at is null
   and not exists (select from acquirer_account a where a.name = l.account)
returning l.account;

-- name: lost_as(account, own_id, key_print)^
-- What is remembered of an account that was forgotten, by its name or by what its acquirer calls it; and first of all of one
-- that another cell asks, also by its key.
select account, kind, own_id, moved_to
  from acquirer_lost
 where account = :account or (own_id <> '' and own_id = :own_id)
    or (moved_to is not null and key_print = :key_print)
 order by moved_to is not null desc, account = :account desc
 limit 1;
