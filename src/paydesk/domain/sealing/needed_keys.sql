-- name: keys_needed()
-- The keys under which anything rests, one line per place: each column's index is asked for its least key, then for the
-- next one above it, so that millions of rows cost as much as one. (No key id is empty.)
with recursive step (place, key_id) as (
    select place, ''
      from unnest(array['private_keys', 'card_numbers', 'second_factors', 'bank_accounts', 'proposed_accounts',
                        'acquirer_keys', 'webhook_secrets', 'mail_facts']) as named (place)
     union all
    select step.place, next.key_id
      from step
     cross join lateral (
         (select vault_key_id as key_id
            from merchant_key
           where step.place = 'private_keys' and vault_key_id > step.key_id
           order by vault_key_id
           limit 1)
          union all
         (select vault_key_id
            from card
           where step.place = 'card_numbers' and number_sealed is not null and vault_key_id > step.key_id
           order by vault_key_id
           limit 1)
          union all
         (select vault_key_id
            from person
           where step.place = 'second_factors' and totp_sealed is not null and vault_key_id > step.key_id
           order by vault_key_id
           limit 1)
          union all
         (select vault_key_id
            from business_profile
           where step.place = 'bank_accounts' and iban_sealed is not null and vault_key_id > step.key_id
           order by vault_key_id
           limit 1)
          union all
         (select vault_key_id
            from profile_change
           where step.place = 'proposed_accounts' and status = 'waiting' and iban_sealed is not null
             and vault_key_id > step.key_id
           order by vault_key_id
           limit 1)
          union all
         (select vault_key_id
            from acquirer_account
           where step.place = 'acquirer_keys' and key_sealed is not null and vault_key_id > step.key_id
           order by vault_key_id
           limit 1)
          union all
         (select webhook_key_id
            from acquirer_account
           where step.place = 'webhook_secrets' and webhook_sealed is not null and webhook_key_id > step.key_id
           order by webhook_key_id
           limit 1)
          union all
         (select facts #>> '{token,vault_key_id}'
            from mail
           where step.place = 'mail_facts' and facts ? 'token' and facts #>> '{token,vault_key_id}' > step.key_id
           order by facts #>> '{token,vault_key_id}'
           limit 1)
     ) next
)
select place, key_id from step where key_id <> '' order by key_id, place;
