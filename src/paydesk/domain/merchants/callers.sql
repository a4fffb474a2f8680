-- name: find_caller(private_key_lookup, client_address, minute, now)^
-- The merchant that a private key belongs to, and how many calls this client has made in this minute. Finding and
-- counting are one statement; calls with a wrong key count together, under merchant 0.
with found as (
    select k.merchant_id, k.id as key_id, k.scopes, k.moves_live, m.test_mode, m.went_live_at, m.test_clock
      from merchant_key k
      join merchant m on m.id = k.merchant_id
     where k.private_key_lookup = :private_key_lookup and (k.valid_until is null or k.valid_until > :now)
), counted as (
    insert into form_count as c (merchant_id, client_address, minute, forms)
    select coalesce((select merchant_id from found), 0), 'api ' || :client_address::text, :minute, 1
        on conflict (merchant_id, client_address, minute) do update set forms = c.forms + 1
 returning forms
)
select found.*, counted.forms as calls, d.copied_at is not null as in_a_copy
  from counted
 cross join deployment d
  left join found on true;
