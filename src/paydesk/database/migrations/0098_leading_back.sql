-- Where a customer is led after paying: by itself once, and into an app only if the account has named its scheme.

alter table checkout add column led_back_at timestamptz;
comment on column checkout.led_back_at is 'when the customer was led to success_url by itself, which happens once';

alter table merchant add column app_schemes text[] not null default '{}';
comment on column merchant.app_schemes is 'schemes of the account''s own apps, to which a customer is led without a button';

-- An account that an operator opened has no owner until somebody is invited, whose link proves the address.
create function merchant_confirmed(of_merchant bigint) returns boolean
language sql stable parallel safe as $$
    select count(*) = 0 or bool_or(p.email_confirmed_at is not null)
      from membership s
      join person p on p.id = s.person_id
     where s.merchant_id = of_merchant and s.role = 'owner'
$$;
comment on function merchant_confirmed is 'whether somebody stands behind an account: an operator who opened it, or an owner whose e-mail address is confirmed';
