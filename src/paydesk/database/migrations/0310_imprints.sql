-- oldest code: 150
-- locks: business_profile, profile_change
-- Where a merchant's terms and its privacy policy are, and what customers read below pages and mails. Code of before writes
-- neither address: null in a proposed version keeps the accepted one.
alter table business_profile add column terms_url text not null default '', add column privacy_url text not null default '';
alter table profile_change add column terms_url text, add column privacy_url text;
comment on column profile_change.terms_url is 'null keeps the accepted one';
comment on column profile_change.privacy_url is 'null keeps the accepted one';

create function shop_imprint(of_merchant bigint) returns text[]
    language sql stable
    as $$
    select array[p.legal_name, p.support_email, p.support_phone, p.terms_url, p.privacy_url]
      from business_profile p
     where p.merchant_id = of_merchant and p.status = 'accepted'
$$;
comment on function shop_imprint is 'who a shop is, as its operator has seen it; null before that';
