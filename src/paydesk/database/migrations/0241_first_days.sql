-- oldest code: 150
-- What a shop does on its first day is read from what is true; all that is stored is that its team put the list away.
alter table merchant add column first_day_over_at timestamptz;
comment on column merchant.first_day_over_at is 'when its team put away the list of what to do on a first day';

create function unseen_first_key(of_merchant bigint) returns bigint language sql stable return (
    select k.id
      from merchant_key k
     where k.merchant_id = of_merchant
       and not exists (select from merchant_key other where other.merchant_id = k.merchant_id and other.id <> k.id)
       and exists (select from audit_entry a where a.merchant_id = k.merchant_id and a.action = 'merchant_opened')
       and not exists (select from audit_entry a where a.merchant_id = k.merchant_id and a.action = 'key_shown')
);
comment on function unseen_first_key is
    'the first pair of a shop that was opened in the account, while nobody has seen its private key';
