-- What is stored of somebody, row by row as JSON: all columns but secrets and what only finds a value (fingerprints,
-- digests, tokens of links).

-- name: export_customers(merchant_id, live, ids)
select to_jsonb(t) as row from customer t
 where t.merchant_id = :merchant_id and t.live = :live and t.id = any(:ids::bigint[]) order by t.id;

-- name: export_cards(merchant_id, live, ids)
select to_jsonb(t) - '{number_sealed,vault_key_id,fingerprint}'::text[]
       || jsonb_build_object('number_is_kept', t.number_sealed is not null) as row
  from card t
 where t.merchant_id = :merchant_id and t.live = :live and t.id = any(:ids::bigint[]) order by t.id;

-- name: export_shoppers(merchant_id, live, ids)
select to_jsonb(t) - '{seed}'::text[]
       || jsonb_build_object('browsers', (select coalesce(jsonb_agg(to_jsonb(b) - '{token,previous}'::text[]), '[]')
                                            from shopper_session b
                                           where b.merchant_id = t.merchant_id and b.live = t.live
                                             and b.shopper_id = t.id)) as row
  from shopper t
 where t.merchant_id = :merchant_id and t.live = :live and t.id = any(:ids::bigint[]) order by t.id;

-- name: export_instruments(merchant_id, live, ids)
select to_jsonb(t) as row from saved_instrument t
 where t.merchant_id = :merchant_id and t.live = :live and t.id = any(:ids::bigint[]) order by t.id;

-- name: export_charges(merchant_id, live, payments, instruments)
select to_jsonb(t) - '{request_key}'::text[] as row from instrument_charge t
 where t.merchant_id = :merchant_id and t.live = :live
   and (t.payment_id = any(:payments::bigint[]) or t.instrument_id = any(:instruments::bigint[]))
 order by t.attempt_id;

-- name: export_checkouts(merchant_id, live, ids)
select to_jsonb(t) - '{token,token_hash,request_digest}'::text[] as row from checkout t
 where t.merchant_id = :merchant_id and t.live = :live and t.id = any(:ids::bigint[]) order by t.id;

-- name: export_payments(merchant_id, live, ids)
select to_jsonb(t) as row from payment t
 where t.merchant_id = :merchant_id and t.live = :live and t.id = any(:ids::bigint[]) order by t.id;

-- name: export_attempts(merchant_id, live, ids)
select to_jsonb(t) - '{idempotency_key}'::text[] as row from payment_attempt t
 where t.merchant_id = :merchant_id and t.live = :live and t.id = any(:ids::bigint[]) order by t.id;

-- name: export_subscriptions(merchant_id, live, ids)
select to_jsonb(t) - '{portal_token,portal_token_hash,portal_seed}'::text[]
           || jsonb_build_object('changes', (select coalesce(jsonb_agg(to_jsonb(c) order by c.id), '[]')
                                               from subscription_change c
                                              where c.merchant_id = t.merchant_id and c.live = t.live
                                                and c.subscription_id = t.id),
                                 'items', (select coalesce(jsonb_agg(to_jsonb(i) - 'request_key' order by i.id), '[]')
                                             from subscription_item i
                                            where i.merchant_id = t.merchant_id and i.live = t.live
                                              and i.subscription_id = t.id)) as row
  from subscription t
 where t.merchant_id = :merchant_id and t.live = :live and t.id = any(:ids::bigint[]) order by t.id;

-- name: export_changes(merchant_id, live, ids)
select to_jsonb(t) - '{idempotency_key}'::text[] as row from card_change t
 where t.merchant_id = :merchant_id and t.live = :live and t.id = any(:ids::bigint[]) order by t.id;

-- name: export_movements(merchant_id, live, ids)
select to_jsonb(t) - '{idempotency_key,request_key}'::text[] as row from movement t
 where t.merchant_id = :merchant_id and t.live = :live and t.id = any(:ids::bigint[]) order by t.id;

-- name: export_chargebacks(merchant_id, live, ids)
select to_jsonb(t) as row from chargeback t
 where t.merchant_id = :merchant_id and t.live = :live and t.id = any(:ids::bigint[]) order by t.id;

-- name: export_evidence_files(merchant_id, live, ids)
select to_jsonb(t) - '{content,upload_key}'::text[] || jsonb_build_object('content', encode(t.content, 'base64')) as row
  from evidence_file t
 where t.merchant_id = :merchant_id and t.live = :live and t.chargeback_id = any(:ids::bigint[]) order by t.id;

-- name: export_deliveries(merchant_id, live, ids)
select to_jsonb(t) - '{digest}'::text[] as row from delivery t
 where t.merchant_id = :merchant_id and t.live = :live and t.id = any(:ids::bigint[]) order by t.id;

-- name: export_pingbacks(merchant_id, live, ids)
select to_jsonb(t) || jsonb_build_object('payload', t.payload::jsonb) as row from pingback t
 where t.merchant_id = :merchant_id and t.live = :live and t.id = any(:ids::bigint[]) order by t.id;

-- name: export_pingback_attempts(merchant_id, live, ids)
select to_jsonb(t) - '{request_headers}'::text[] as row from pingback_attempt t
 where t.merchant_id = :merchant_id and t.live = :live and t.pingback_id = any(:ids::bigint[]) order by t.at, t.id;

-- name: export_refused_forms(merchant_id, live, orders, patterns, wholes)
select to_jsonb(t) as row from rejected_form t
 where t.merchant_id = :merchant_id and t.live = :live
   and (t.fields ->> 'merchant_order_id' = any(:orders::text[])
        or lower(t.fields::text) like any(:patterns::text[]) and lower(t.fields::text) ~ any(:wholes::text[])
        or lower(t.reason) like any(:patterns::text[]) and lower(t.reason) ~ any(:wholes::text[]))
 order by t.at, t.id;

-- name: export_api_calls(merchant_id, live, patterns, wholes)
select to_jsonb(t) - '{request_digest}'::text[] as row from api_call t
 where t.merchant_id = :merchant_id and t.live = :live
   and lower(t.answer) like any(:patterns::text[]) and lower(t.answer) ~ any(:wholes::text[])
 order by t.created_at;

-- name: export_mails(merchant_id, emails, patterns, wholes)
select to_jsonb(t) - '{once}'::text[] as row from mail t
 where t.merchant_id = :merchant_id
   and (lower(t.recipient) = any(:emails::text[])
        or lower(t.facts::text) like any(:patterns::text[]) and lower(t.facts::text) ~ any(:wholes::text[]))
 order by t.id;
