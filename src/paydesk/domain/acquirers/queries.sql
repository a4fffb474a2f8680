-- name: accounts()
-- All accounts, in the order in which they are asked to take a payment; not those that come with a merchant, or have gone.
select a.id, a.name, a.kind, a.live, a.for_merchant_id, a.currencies, a.address, a.hosts_pages, a.page_domain, a.enabled,
       a.created_at, a.key_sealed is not null as has_key, a.webhook_sealed is not null as has_webhook_secret,
       coalesce(o.own_id, '') as own_id, a.gone_at
  from acquirer_account a
  left join acquirer_own_id o on o.account = a.name
 where a.name <> all (accounts_left_alone(false))
 order by a.for_merchant_id nulls last, a.id;

-- name: tags_of(account)$
-- The deployments whose purchases at an account are ours: this one, and the cells that it came from with its merchant.
select array_append(coalesce(a.asked_by, '{}'), d.tag)
  from deployment d
  left join acquirer_account a on a.name = :account;

-- name: not_here()$
-- Accounts that a process may have open though they are not this cell's yet, or not any more.
select accounts_left_alone(false);

-- name: revisions()
-- What a process opens: not what is gone. In a copy for staging that is nothing for live payments, and nothing that was added
-- before it was one: those banks are the other deployment's.
select a.name, a.live, a.revision
  from acquirer_account a
 cross join deployment d
 where a.gone_at is null and (d.copied_at is null or not a.live and a.created_at > d.copied_at);

-- name: sealed_accounts(names)
-- What opens accounts.
select id, name, kind, live, address, hosts_pages, page_domain, revision, key_sealed, vault_key_id, webhook_sealed,
       webhook_key_id
  from acquirer_account
 where name = any(:names::text[]);

-- name: next_id()$
select nextval('acquirer_account_id_seq');

-- name: add_account(id, name, kind, live, for_merchant_id, currencies, address, hosts_pages, page_domain, key_sealed, vault_key_id, key_print, webhook_sealed, webhook_key_id, now)$
insert into acquirer_account (id, name, kind, live, for_merchant_id, currencies, address, hosts_pages, page_domain,
                              key_sealed, vault_key_id, key_print, webhook_sealed, webhook_key_id, created_at)
values (:id, :name, :kind, :live, :for_merchant_id, :currencies, :address, :hosts_pages, :page_domain, :key_sealed,
        :vault_key_id, :key_print, :webhook_sealed, :webhook_key_id, :now)
    on conflict do nothing
returning id;

-- name: account_named(name)^
select a.id, a.name, a.kind, a.live, a.for_merchant_id, a.currencies, a.address, a.hosts_pages, a.page_domain, a.enabled,
       a.created_at, a.key_sealed is not null as has_key, a.webhook_sealed is not null as has_webhook_secret,
       coalesce(o.own_id, '') as own_id, a.gone_at
  from acquirer_account a
  left join acquirer_own_id o on o.account = a.name
 where a.name = :name;

-- name: set_enabled(name, enabled)$
-- One that is enabled serves at once: every process has known it, enabled or not. One that was gone is opened again by all
-- first.
update acquirer_account
   set enabled = :enabled, gone_at = null, gone_because = '',
       serves_from = case when gone_at is null then serves_from else clock_timestamp() + interval '15 seconds' end,
       revision = case when gone_at is null then revision else nextval('acquirer_account_revision_seq') end
 where name = :name and enabled <> :enabled
returning id;

-- name: account_gone(name, because)$
-- One that takes payments is not gone. Only the call that says so gets its id.
update acquirer_account
   set gone_at = clock_timestamp(), gone_because = :because
 where name = :name and not enabled and gone_at is null
returning id;

-- name: set_currencies(name, currencies)$
update acquirer_account set currencies = :currencies where name = :name and currencies <> :currencies returning id;

-- name: key_is_taken(key_print)$
select exists (select from acquirer_account where key_print = :key_print);

-- name: set_key(name, key_sealed, vault_key_id, key_print)$
update acquirer_account
   set key_sealed = :key_sealed, vault_key_id = :vault_key_id, key_print = :key_print,
       revision = nextval('acquirer_account_revision_seq')
 where name = :name and key_sealed is not null
   and not exists (select from acquirer_account o where o.key_print = :key_print and o.name <> :name)
returning id;

-- name: set_webhook_secrets(name, webhook_sealed, webhook_key_id)$
update acquirer_account
   set webhook_sealed = :webhook_sealed, webhook_key_id = :webhook_key_id,
       revision = nextval('acquirer_account_revision_seq')
 where name = :name
returning id;

-- name: serving(merchant_id, live, currency)
-- The accounts that take new payments of a merchant in a currency (null: in any): its own first, then in the order in which they were
-- added.
select name
  from acquirer_account
 where live = :live and enabled and serves_from <= clock_timestamp()
   and (for_merchant_id is null or for_merchant_id = :merchant_id)
   and (:currency::text is null or currencies = '{}' or :currency = any(currencies))
 order by for_merchant_id nulls last, id;

-- name: tried_at(merchant_id, live, merchant_order_id)^
-- Where an order was tried last; whether it is certain that nothing was, or will be, taken there or anywhere; and which
-- accounts began nothing for it, because they could not be reached or refused to be asked. (What could not be reached is
-- looked up once more all the same, and undone if it was approved after all.)
select (array_agg(a.acquirer order by a.id desc))[1] as acquirer,
       coalesce(bool_and(a.state = 'failed' and a.decline_reason = 'not_reached'
                         or a.lookup_at is null and a.state in ('declined', 'failed', 'abandoned', 'voided')), true) as is_over,
       coalesce(array_agg(distinct a.acquirer)
                    filter (where a.state in ('declined', 'failed') and a.decline_reason in ('not_reached', 'request_refused')),
                '{}') as began_nothing
  from payment p
  join payment_attempt a on a.merchant_id = p.merchant_id and a.live = p.live and a.payment_id = p.id
 where p.merchant_id = :merchant_id and p.live = :live and p.merchant_order_id = :merchant_order_id and not p.renewal;

-- name: was_forgotten_at(merchant_id, live, merchant_order_id, pads, names)$
-- The account whose list had a purchase of this order that our books had forgotten: one of these, another one that was
-- added, or one that was forgotten itself.
select named.name
  from merchant m
 cross join (
     select name, place from unnest(:names::text[]) with ordinality as known (name, place)
      union all
     select name, null from acquirer_account
      union all
     select account, null from acquirer_lost
 ) as named
 where m.id = :merchant_id
   and exists (select from alarm where merchant_id = 0 and live and kind = 'not_reconciled' and settled_at is null)
   and was_forgotten(
           :pads, named.name,
           'order ' || m.key_tag || ' ' || case when :live then 'live' else 'test ' || m.test_generation end || ' ',
           coalesce((select next_attempt(p.merchant_id, p.live, p.id)
                       from payment p
                      where p.merchant_id = m.id and p.live = :live and p.merchant_order_id = :merchant_order_id
                        and not p.renewal), 1),
           ' ' || :merchant_order_id)
 order by named.place nulls last
 limit 1;

-- name: rules()
-- Not those of merchants that come from another cell, or have gone there.
select id, account, for_merchant_id, currency, country, brand, least, most, share
  from acquirer_rule
 where for_merchant_id is null
    or for_merchant_id <> all (array(select merchant_id from merchant_fence where arrives or moved_at is not null))
 order by id;

-- name: add_rule(account, for_merchant_id, currency, country, brand, least, most, share, now)$
insert into acquirer_rule (account, for_merchant_id, currency, country, brand, least, most, share, created_at)
values (:account, :for_merchant_id, :currency, :country, :brand, :least, :most, :share, :now)
returning id;

-- name: remove_rule(id)$
delete from acquirer_rule where id = :id returning account;

-- name: own_id(account)$
-- Whose account is asked under a name, as the acquirer calls it, once that was learnt.
select own_id from acquirer_own_id where account = :account;

-- name: account_of(own_id)$
select account from acquirer_own_id where own_id = :own_id;

-- name: keep_own_id(account, own_id)$
-- An account stays what it is: who writes down another one under its name, or it under another name, gets nothing back.
insert into acquirer_own_id as o (account, own_id)
values (:account, :own_id)
    on conflict (account) do update
       set learnt_at = clock_timestamp()
     where o.own_id = excluded.own_id
returning account;

-- name: change_own_id(account, own_id)$
-- The settings may name another account any time; it gets nothing back if nothing changed, or another name has it.
insert into acquirer_own_id as o (account, own_id)
select :account, :own_id
 where not exists (select from acquirer_own_id where own_id = :own_id)
    on conflict (account) do update
       set own_id = excluded.own_id, learnt_at = clock_timestamp()
returning account;
