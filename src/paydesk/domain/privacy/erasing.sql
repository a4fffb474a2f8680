-- name: hold_shoppers(merchant_id, live, ids)!
-- A charge of a saved card holds its shopper until its intent stands (lock_shopper): it is waited for, and the next one
-- waits.
select id
  from shopper
 where merchant_id = :merchant_id and live = :live and id = any(:ids::bigint[])
 order by id
   for update;

-- name: hold_instruments(merchant_id, live, ids)!
-- So does a payment by one press (hold_saved).
select id
  from saved_instrument
 where merchant_id = :merchant_id and live = :live and id = any(:ids::bigint[])
 order by id
   for update;

-- name: erase_customers(merchant_id, live, ids, now)!
update customer
   set email = 'erased', first_name = 'erased', last_name = 'erased', username = 'erased', country = '',
       language = 'en', erased_at = coalesce(erased_at, :now)
 where merchant_id = :merchant_id and live = :live and id = any(:ids::bigint[]);

-- name: erase_cards(merchant_id, live, ids, now)!
-- The brand stays: it is nobody's.
update card
   set number_sealed = null, stored_reference = '', fingerprint = '', bin = '', last4 = 'erased', exp_month = 0,
       exp_year = 0, holder = 'erased', erased_at = coalesce(erased_at, :now)
 where merchant_id = :merchant_id and live = :live and id = any(:ids::bigint[]);

-- name: erase_shoppers(merchant_id, live, ids, now)!
-- No browser knows them any more, and their address may be proved anew, as another's.
with gone as (
    delete from shopper_session
     where merchant_id = :merchant_id and live = :live and shopper_id = any(:ids::bigint[])
)
update shopper
   set email = 'erased', seed = gen_random_uuid(), erased_at = coalesce(erased_at, :now)
 where merchant_id = :merchant_id and live = :live and id = any(:ids::bigint[]);

-- name: erase_charges(merchant_id, live, ids, instruments, patterns)!
-- Charges of their payments, and of what they saved: a payer may have typed another address than they proved.
update instrument_charge
   set description = 'erased'
 where merchant_id = :merchant_id and live = :live
   and (payment_id = any(:ids::bigint[]) or instrument_id = any(:instruments::bigint[]))
   and lower(description) like any(:patterns::text[]);

-- name: erase_codes(merchant_id, live, emails)!
delete from shopper_code where merchant_id = :merchant_id and live = :live and lower(email) = any(:emails::text[]);

-- name: erase_instruments(merchant_id, live, ids, now)!
-- Their numbers go with the cards; that something was agreed to, and when, stays.
update saved_instrument
   set removed_at = coalesce(removed_at, :now)
 where merchant_id = :merchant_id and live = :live and id = any(:ids::bigint[]);

-- name: erase_checkouts(merchant_id, live, ids, kept, patterns, now)!
-- Of what the shop sent, only the fields named in `kept` stay. The digest of the request would tell whoever guesses a
-- person's values that they were these, so that it becomes another; an open checkout closes.
update checkout c
   set email = 'erased', first_name = 'erased', last_name = 'erased', country = '',
       parameters = coalesce((select jsonb_object_agg(f.key, case when f.key = any(:kept::text[]) then f.value
                                                                  else '"erased"' end)
                                from jsonb_each(c.parameters) f), '{}'),
       description = case when lower(c.description) like any(:patterns::text[]) then 'erased' else c.description end,
       line_items = case when not lower(c.line_items::text) like any(:patterns::text[]) then c.line_items end,
       success_url = case when lower(c.success_url) like any(:patterns::text[])
                          then substring(c.success_url from '^https?://[^/?#]+') || '/' else c.success_url end,
       pingback_url = case when lower(c.pingback_url) like any(:patterns::text[])
                           then substring(c.pingback_url from '^https?://[^/?#]+') || '/' else c.pingback_url end,
       terms_agreed = case when lower(c.terms_agreed) like any(:patterns::text[]) then 'erased' else c.terms_agreed end,
       request_digest = sha256(gen_random_uuid()::text::bytea),
       expires_at = least(c.expires_at, :now)
 where c.merchant_id = :merchant_id and c.live = :live and c.id = any(:ids::bigint[]);

-- name: erase_payments(merchant_id, live, ids, patterns)!
update payment
   set pingback_url = substring(pingback_url from '^https?://[^/?#]+') || '/'
 where merchant_id = :merchant_id and live = :live and id = any(:ids::bigint[])
   and lower(pingback_url) like any(:patterns::text[]);

-- name: erase_attempts(merchant_id, live, ids)!
update payment_attempt
   set client_address = case when client_address = '' then '' else 'erased' end, challenge_url = '',
       network_reference = ''
 where merchant_id = :merchant_id and live = :live and id = any(:ids::bigint[]);

-- name: end_pages(merchant_id, live, attempts, now)$
-- Open pages of an acquirer's on which an erased customer might still pay are to be ended; how many there are.
with open as (
    update hosted_page h
       set ending = true
      from payment_attempt a
     where h.merchant_id = :merchant_id and h.live = :live and h.attempt_id = any(:attempts::bigint[])
       and a.merchant_id = h.merchant_id and a.live = h.live and a.id = h.attempt_id
       and a.state in ('processing', 'challenged')
 returning h.merchant_id, h.live, h.attempt_id
), hurried as (
    update payment_attempt a
       set lookup_at = :now
      from open
     where a.merchant_id = open.merchant_id and a.live = open.live and a.id = open.attempt_id
)
select count(*) from open;

-- name: erase_pages(merchant_id, live, ids)!
update hosted_page
   set asked = '', ending = true
 where merchant_id = :merchant_id and live = :live and attempt_id = any(:ids::bigint[]);

-- name: erase_changes(merchant_id, live, ids)!
update card_change
   set client_address = 'erased', challenge_url = '', network_reference = '', page_asked = ''
 where merchant_id = :merchant_id and live = :live and id = any(:ids::bigint[]);

-- name: erase_subscriptions(merchant_id, live, ids, patterns)!
update subscription
   set network_reference = '',
       terms_agreed = case when lower(terms_agreed) like any(:patterns::text[]) then 'erased' else terms_agreed end,
       pingback_url = case when lower(pingback_url) like any(:patterns::text[])
                           then substring(pingback_url from '^https?://[^/?#]+') || '/' else pingback_url end
 where merchant_id = :merchant_id and live = :live and id = any(:ids::bigint[]);

-- name: erase_items(merchant_id, live, ids, patterns)!
update subscription_item
   set description = 'erased'
 where merchant_id = :merchant_id and live = :live and subscription_id = any(:ids::bigint[])
   and lower(description) like any(:patterns::text[]);

-- name: erase_deliveries(merchant_id, live, ids)!
update delivery
   set tracking_id = case when tracking_id = '' then '' else 'erased' end,
       tracking_url = case when tracking_url = '' then '' else 'erased' end,
       product_description = case when product_description = '' then '' else 'erased' end,
       details = case when details = '' then '' else 'erased' end,
       reason = case when reason = '' then '' else 'erased' end,
       attachments = '[]', shipping_address = null, digest = sha256(gen_random_uuid()::text::bytea)
 where merchant_id = :merchant_id and live = :live and id = any(:ids::bigint[]);

-- name: erase_chargebacks(merchant_id, live, ids)!
update chargeback
   set evidence = case when evidence <> '' then 'erased' else '' end,
       evidence_draft = ''
 where merchant_id = :merchant_id and live = :live and id = any(:ids::bigint[])
   and (evidence <> '' or evidence_draft <> '');

-- name: erase_evidence_files(merchant_id, live, ids)!
update evidence_file
   set content = null, name = 'erased'
 where merchant_id = :merchant_id and live = :live and chargeback_id = any(:ids::bigint[])
   and (content is not null or name <> 'erased');

-- name: erase_movements(merchant_id, live, ids, patterns)!
update movement
   set refusal = 'erased'
 where merchant_id = :merchant_id and live = :live and id = any(:ids::bigint[])
   and lower(refusal) like any(:patterns::text[]);

-- name: pingbacks_to_erase(merchant_id, live, ids)
select id, payload
  from pingback
 where merchant_id = :merchant_id and live = :live and id = any(:ids::bigint[])
   for update;

-- name: erase_pingbacks(merchant_id, live, ids, payloads, patterns)!
update pingback b
   set payload = o.payload,
       url = case when lower(b.url) like any(:patterns::text[])
                  then substring(b.url from '^https?://[^/?#]+') || '/' else b.url end
  from unnest(:ids::bigint[], :payloads::text[]) as o (id, payload)
 where b.merchant_id = :merchant_id and b.live = :live and b.id = o.id;

-- name: erase_pingback_attempts(merchant_id, live, ids, patterns)!
-- An answer that says ok stays, as the proof that the pingback was acknowledged.
update pingback_attempt
   set request_headers = '{}', request_body = 'erased',
       response_body = case when response_body ~* '^\s*(ok)?\s*$' then response_body else 'erased' end,
       error = case when lower(error) like any(:patterns::text[]) then 'erased' else error end,
       url = case when lower(url) like any(:patterns::text[])
                  then substring(url from '^https?://[^/?#]+') || '/' else url end
 where merchant_id = :merchant_id and live = :live and pingback_id = any(:ids::bigint[]);

-- name: erase_rejected_forms(merchant_id, live, orders, kept, patterns, wholes)!
update rejected_form r
   set reason = 'erased', hashed = null, suspect = null,
       fields = coalesce((select jsonb_object_agg(f.key, case when f.key = any(:kept::text[]) then f.value
                                                              else '"erased"' end)
                            from jsonb_each(r.fields) f), '{}')
 where r.merchant_id = :merchant_id and r.live = :live
   and (r.fields ->> 'merchant_order_id' = any(:orders::text[])
        or lower(r.fields::text) like any(:patterns::text[]) and lower(r.fields::text) ~ any(:wholes::text[])
        or lower(r.reason) like any(:patterns::text[]) and lower(r.reason) ~ any(:wholes::text[]));

-- name: erase_api_calls(merchant_id, live, patterns, wholes)!
-- First answers that name the person. The same call under its key is refused from then on, and so never made again.
update api_call
   set answer = '{}', request_digest = sha256(gen_random_uuid()::text::bytea)
 where merchant_id = :merchant_id and live = :live and status is not null
   and lower(answer) like any(:patterns::text[]) and lower(answer) ~ any(:wholes::text[]);

-- name: delete_mails(merchant_id, emails)!
-- Mails to the person, on whichever side.
delete from mail where merchant_id = :merchant_id and lower(recipient) = any(:emails::text[]);

-- name: mails_to_erase(merchant_id, patterns, wholes)
-- Mails to others about the person.
select id, facts
  from mail
 where merchant_id = :merchant_id
   and (lower(facts::text) like any(:patterns::text[]) and lower(facts::text) ~ any(:wholes::text[])
        or lower(last_error) like any(:patterns::text[]) and lower(last_error) ~ any(:wholes::text[]))
   for update;

-- name: erase_mails(merchant_id, ids, facts, patterns)!
update mail m
   set facts = o.facts, last_error = case when lower(m.last_error) like any(:patterns::text[]) then 'erased'
                                          else m.last_error end
  from unnest(:ids::bigint[], :facts::jsonb[]) as o (id, facts)
 where m.merchant_id = :merchant_id and m.id = o.id;

-- name: orders_left(merchant_id, live, payments, checkouts, patterns)
-- The shop's own references that hold a person's values: they name the order to the shop, so that they stay.
select merchant_order_id
  from payment
 where merchant_id = :merchant_id and live = :live and id = any(:payments::bigint[])
   and lower(merchant_order_id) like any(:patterns::text[])
 union
select merchant_order_id
  from checkout
 where merchant_id = :merchant_id and live = :live and id = any(:checkouts::bigint[])
   and lower(merchant_order_id) like any(:patterns::text[]);
