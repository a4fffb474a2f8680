-- name: find_target(merchant_id)^
-- Where an account's pingbacks go and how they are signed: with its newest key, as forms from now on would ask for.
select m.pingback_url as account_url, m.test_pingback_url, m.went_live_at, m.pingback_format, m.sign_version,
       (select max(id) from merchant_key where merchant_id = m.id) as key_id
  from merchant m
 where m.id = :merchant_id;

-- name: count_test_event(merchant_id, minute)$
-- How many test events the merchant has sent in this minute, this one with them; counted like the calls of the API.
insert into form_count as c (merchant_id, client_address, minute, forms)
values (:merchant_id, 'test events', :minute, 1)
    on conflict (merchant_id, client_address, minute) do update set forms = c.forms + 1
returning forms;
