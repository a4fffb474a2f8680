-- name: find(merchant_id)^
-- A merchant without a profile is found, too.
select p.legal_name, p.street, p.postal_code, p.city, p.country, p.registration, p.vat_number, p.website,
       p.support_email, p.support_phone, p.terms_url, p.privacy_url, p.description, p.goods, p.account_holder, p.merchant_id, p.status,
       p.iban_last4, p.changed_at, p.submitted_at, p.decided_at, p.reason, p.payouts_from, m.went_live_at
  from merchant m
  left join business_profile p on p.merchant_id = m.id
 where m.id = :merchant_id;

-- name: accepted_bank_account(merchant_id)^
-- Where a merchant is paid out to, as it rests.
select account_holder, vault_key_id, iban_sealed
  from business_profile
 where merchant_id = :merchant_id and status = 'accepted' and iban_sealed is not null;

-- name: save(merchant_id, legal_name, street, postal_code, city, country, registration, vat_number, website, support_email, support_phone, terms_url, privacy_url, description, goods, account_holder, iban_sealed, vault_key_id, iban_last4, now)$
-- What waits for the operator stays as it was handed in, and what was accepted as it is: no row. A null keeps what is
-- there, so that two people who save different steps lose nothing of each other's.
insert into business_profile as p
       (merchant_id, status, legal_name, street, postal_code, city, country, registration, vat_number, website,
        support_email, support_phone, terms_url, privacy_url, description, goods, account_holder, iban_sealed,
        vault_key_id, iban_last4, changed_at)
values (:merchant_id, 'draft', coalesce(:legal_name, ''), coalesce(:street, ''), coalesce(:postal_code, ''),
        coalesce(:city, ''), coalesce(:country, ''), coalesce(:registration, ''), coalesce(:vat_number, ''),
        coalesce(:website, ''), coalesce(:support_email, ''), coalesce(:support_phone, ''), coalesce(:terms_url, ''),
        coalesce(:privacy_url, ''), coalesce(:description, ''),
        coalesce(:goods, ''), coalesce(:account_holder, ''), :iban_sealed, :vault_key_id, :iban_last4, :now)
    on conflict (merchant_id) do update
   set status = 'draft', legal_name = coalesce(:legal_name, p.legal_name), street = coalesce(:street, p.street),
       postal_code = coalesce(:postal_code, p.postal_code), city = coalesce(:city, p.city),
       country = coalesce(:country, p.country), registration = coalesce(:registration, p.registration),
       vat_number = coalesce(:vat_number, p.vat_number), website = coalesce(:website, p.website),
       support_email = coalesce(:support_email, p.support_email),
       support_phone = coalesce(:support_phone, p.support_phone),
       terms_url = coalesce(:terms_url, p.terms_url), privacy_url = coalesce(:privacy_url, p.privacy_url),
       description = coalesce(:description, p.description), goods = coalesce(:goods, p.goods),
       account_holder = coalesce(:account_holder, p.account_holder),
       iban_sealed = coalesce(excluded.iban_sealed, p.iban_sealed),
       vault_key_id = case when excluded.iban_sealed is null then p.vault_key_id else excluded.vault_key_id end,
       iban_last4 = case when excluded.iban_sealed is null then p.iban_last4 else excluded.iban_last4 end,
       changed_at = excluded.changed_at
 where p.status in ('draft', 'refused')
returning merchant_id;

-- name: submit(merchant_id, changed_at, person_id, now)$
-- Only what was looked at and found complete: somebody may have saved something else meanwhile.
update business_profile
   set status = 'submitted', submitted_at = :now, submitted_by = :person_id, reason = ''
 where merchant_id = :merchant_id and status in ('draft', 'refused') and changed_at = :changed_at
returning merchant_id;

-- name: withdraw(merchant_id)$
update business_profile set status = 'draft' where merchant_id = :merchant_id and status = 'submitted' returning merchant_id;

-- name: accept(merchant_id, seen, person_id, wait, now)$
-- From now on the merchant may leave test mode; its team decides when. Only what was looked at: the merchant may have
-- taken it back and submitted something else.
with accepted as (
    update business_profile
       set status = 'accepted', decided_at = :now, decided_by = :person_id, reason = '',
           payouts_from = case when iban_sealed is not null then :now::timestamptz + :wait::interval end
     where merchant_id = :merchant_id and status = 'submitted' and submitted_at = :seen
 returning merchant_id
)
update merchant m
   set went_live_at = coalesce(m.went_live_at, :now)
  from accepted a
 where m.id = a.merchant_id
returning m.id;

-- name: refuse(merchant_id, seen, person_id, reason, now)$
update business_profile
   set status = 'refused', decided_at = :now, decided_by = :person_id, reason = :reason
 where merchant_id = :merchant_id and status = 'submitted' and submitted_at = :seen
returning merchant_id;

-- name: waiting(most)
-- Who waits for the operator, with a request to go live or a change, longest first.
select w.merchant_id, m.name as merchant_name, w.legal_name, w.country, w.change, w.submitted_at
  from ((select merchant_id, legal_name, country, false as change, submitted_at
           from business_profile
          where status = 'submitted'
          order by submitted_at, merchant_id
          limit :most)
        union all
        (select merchant_id, legal_name, country, true, proposed_at
           from profile_change
          where status = 'waiting'
          order by proposed_at, merchant_id
          limit :most)) w
  join merchant m on m.id = w.merchant_id
 order by w.submitted_at, w.merchant_id
 limit :most;
