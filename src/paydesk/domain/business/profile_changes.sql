-- name: newest(merchant_id)^
select c.legal_name, c.street, c.postal_code, c.city, c.country, c.registration, c.vat_number, c.website, c.support_email,
       c.support_phone, coalesce(c.terms_url, p.terms_url, '') as terms_url,
       coalesce(c.privacy_url, p.privacy_url, '') as privacy_url, c.description, c.goods, c.account_holder, c.status,
       c.iban_last4, c.proposed_at, c.decided_at, c.reason
  from profile_change c
  left join business_profile p on p.merchant_id = c.merchant_id
 where c.merchant_id = :merchant_id
 order by c.id desc
 limit 1;

-- name: propose(merchant_id, based_on, legal_name, street, postal_code, city, country, registration, vat_number, website, support_email, support_phone, terms_url, privacy_url, description, goods, account_holder, iban_sealed, vault_key_id, iban_last4, person_id, now)$
-- Beside the accepted version, and only over the one that it was compared with; one waits at a time.
insert into profile_change
       (merchant_id, legal_name, street, postal_code, city, country, registration, vat_number, website, support_email,
        support_phone, terms_url, privacy_url, description, goods, account_holder, iban_sealed, vault_key_id, iban_last4,
        proposed_at, proposed_by)
select p.merchant_id, :legal_name, :street, :postal_code, :city, :country, :registration, :vat_number, :website,
       :support_email, :support_phone, :terms_url, :privacy_url, :description, :goods, :account_holder, :iban_sealed, :vault_key_id, :iban_last4,
       :now, :person_id
  from business_profile p
 where p.merchant_id = :merchant_id and p.status = 'accepted' and p.changed_at = :based_on
    on conflict (merchant_id) where status = 'waiting' do nothing
returning id;

-- name: withdraw(merchant_id, now)$
update profile_change
   set status = 'withdrawn', decided_at = :now, iban_sealed = null, vault_key_id = ''
 where merchant_id = :merchant_id and status = 'waiting'
returning id;

-- name: accept(merchant_id, seen, person_id, wait, now)^
-- Takes the accepted version's place, whole. Only what was looked at: the merchant may have proposed another meanwhile. Of
-- several that decide at once one gets the row. Payouts to another bank account wait.
with waiting as materialized (
    select * from profile_change where merchant_id = :merchant_id and status = 'waiting' and proposed_at = :seen for update
), decided as (
    update profile_change c
       set status = 'accepted', decided_at = :now, decided_by = :person_id, iban_sealed = null, vault_key_id = ''
      from waiting w
     where c.merchant_id = w.merchant_id and c.id = w.id
)
update business_profile p
   set legal_name = w.legal_name, street = w.street, postal_code = w.postal_code, city = w.city, country = w.country,
       registration = w.registration, vat_number = w.vat_number, website = w.website, support_email = w.support_email,
       support_phone = w.support_phone, terms_url = coalesce(w.terms_url, p.terms_url),
       privacy_url = coalesce(w.privacy_url, p.privacy_url), description = w.description, goods = w.goods,
       account_holder = w.account_holder, iban_sealed = coalesce(w.iban_sealed, p.iban_sealed),
       vault_key_id = case when w.iban_sealed is null then p.vault_key_id else w.vault_key_id end,
       iban_last4 = case when w.iban_sealed is null then p.iban_last4 else w.iban_last4 end,
       payouts_from = case when w.iban_sealed is null then p.payouts_from else :now::timestamptz + :wait::interval end,
       changed_at = :now, decided_at = :now, decided_by = :person_id
  from waiting w
 where p.merchant_id = w.merchant_id and p.status = 'accepted'
returning case when w.iban_sealed is not null then p.payouts_from end as payouts_from;

-- name: refuse(merchant_id, seen, person_id, reason, now)$
update profile_change
   set status = 'refused', decided_at = :now, decided_by = :person_id, reason = :reason, iban_sealed = null,
       vault_key_id = ''
 where merchant_id = :merchant_id and status = 'waiting' and proposed_at = :seen
returning id;
