-- name: find_seller(merchant_id, now)^
-- Pingbacks of what is begun without a key are signed with the newest that may sign forms.
select m.id as merchant_id, m.went_live_at, m.suspended_at is not null as suspended, m.shipped_goods, m.signs_quantities,
       m.test_clock,
       d.copied_at is not null as in_a_copy,
       (select k.id
          from merchant_key k
         where k.merchant_id = m.id and 'sign' = any(k.scopes) and (k.valid_until is null or k.valid_until > :now)
         order by k.id desc
         limit 1) as key_id
  from merchant m
 cross join deployment d
 where m.id = :merchant_id;
