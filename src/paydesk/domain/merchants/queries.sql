-- name: create_merchant(name, email, pingback_url, shipped_goods, rate, fixed, reserve_rate, fees_returned, chargeback_fee, settlement_days, reserve_days, now)^
-- A merchant never stands without its terms, all of which are named: no column has others of its own.
with made as (
    insert into merchant (name, email, pingback_url, shipped_goods, settlement_days, reserve_days, created_at)
    values (:name, :email, :pingback_url, :shipped_goods, :settlement_days, :reserve_days, :now)
 returning *
), planned as (
    insert into fee_plan (merchant_id, rate, fixed, reserve_rate, fees_returned, chargeback_fee)
    select id, :rate, :fixed, :reserve_rate, :fees_returned, :chargeback_fee from made
)
select id, name, email, time_zone, test_mode, went_live_at, pingback_url, test_pingback_url,
       pingback_format, shipped_goods, slow_methods, created_at, muted_events, app_schemes, saves_cards,
       signs_quantities, signs_line_items, portal_cancels, portal_pauses, portal_plans, portal_quantities,
       dunning_hours, dunning_by_reason, dunning_end, charge_notice_days,
       trials_without_card,
       :fees_returned::boolean as fees_returned
  from made;

-- name: next_key_id()$
-- A sealed key is bound to its row, so the row's id is drawn before it is sealed.
select nextval('merchant_key_id_seq');

-- name: add_key(merchant_id, id, public_key, private_key_lookup, private_key_sealed, vault_key_id, scopes, moves_live, now)!
insert into merchant_key (merchant_id, id, public_key, private_key_lookup, private_key_sealed, vault_key_id, scopes,
                          moves_live, created_at)
values (:merchant_id, :id, :public_key, :private_key_lookup, :private_key_sealed, :vault_key_id, :scopes::text[], :moves_live,
        :now);

-- name: hold_merchants(merchant_ids)!
-- One at a time makes keys of a merchant, pays it out or saves its settings: see taking_turns.py. Always in this order.
select id from merchant where id = any(:merchant_ids::bigint[]) order by id for no key update;

-- name: newest_key(merchant_id)$
select max(id) from merchant_key where merchant_id = :merchant_id;

-- name: end_keys(merchant_id, until)!
-- A key that ends sooner already goes on ending then.
update merchant_key
   set valid_until = :until
 where merchant_id = :merchant_id and (valid_until is null or valid_until > :until);

-- name: find_merchant(merchant_id)^
select m.id, m.name, m.email, m.time_zone, m.test_mode, m.went_live_at, m.pingback_url, m.test_pingback_url,
       m.pingback_format, m.shipped_goods, m.slow_methods, m.created_at, m.muted_events, m.app_schemes, m.saves_cards,
       m.signs_quantities, m.signs_line_items, m.portal_cancels, m.portal_pauses, m.portal_plans, m.portal_quantities,
       m.dunning_hours, m.dunning_by_reason, m.dunning_end, m.charge_notice_days,
       m.trials_without_card,
       f.fees_returned
  from merchant m
  join fee_plan f on f.merchant_id = m.id
 where m.id = :merchant_id;

-- name: list_merchants()
-- With each merchant's newest key that is still valid.
select m.id, m.name, m.email, m.time_zone, m.test_mode, m.went_live_at, m.pingback_url, m.test_pingback_url,
       m.pingback_format, m.shipped_goods, m.slow_methods, m.created_at, m.muted_events, m.app_schemes, m.saves_cards,
       m.signs_quantities, m.signs_line_items, m.portal_cancels, m.portal_pauses, m.portal_plans, m.portal_quantities,
       m.dunning_hours, m.dunning_by_reason, m.dunning_end, m.charge_notice_days,
       m.trials_without_card,
       f.fees_returned,
       k.public_key, k.scopes
  from merchant m
  join fee_plan f on f.merchant_id = m.id
  left join lateral (
      select public_key, scopes
        from merchant_key
       where merchant_id = m.id and valid_until is null
       order by id desc
       limit 1
  ) k on true
 order by m.id;

-- name: change_merchant(merchant_id, pingback_url, test_pingback_url, pingback_format, test_mode, shipped_goods, slow_methods, muted, unmuted, fees_returned, app_schemes, saves_cards, signs_quantities, signs_line_items, portal_cancels, portal_pauses, portal_plans, portal_quantities, dunning_hours, dunning_by_reason, dunning_end, charge_notice_days, trials_without_card, types_coupons, signs_coupons)^
-- A null leaves a value as it is; an empty text clears a URL, an empty array the hours. muted and unmuted are events to add to and to take from
-- those that are not sent.
with planned as (
    update fee_plan
       set fees_returned = :fees_returned
     where merchant_id = :merchant_id and :fees_returned::boolean is not null
)
update merchant
   set pingback_url = nullif(coalesce(:pingback_url::text, pingback_url), ''),
       test_pingback_url = nullif(coalesce(:test_pingback_url::text, test_pingback_url), ''),
       pingback_format = coalesce(:pingback_format::text, pingback_format),
       test_mode = coalesce(:test_mode::boolean, test_mode),
       shipped_goods = coalesce(:shipped_goods::boolean, shipped_goods),
       slow_methods = coalesce(:slow_methods::boolean, slow_methods),
       app_schemes = coalesce(:app_schemes::text[], app_schemes),
       saves_cards = coalesce(:saves_cards::boolean, saves_cards),
       signs_quantities = coalesce(:signs_quantities::boolean, signs_quantities),
       signs_line_items = coalesce(:signs_line_items::boolean, signs_line_items),
       portal_cancels = coalesce(:portal_cancels::text, portal_cancels),
       portal_pauses = coalesce(:portal_pauses::boolean, portal_pauses),
       portal_plans = coalesce(:portal_plans::text, portal_plans),
       portal_quantities = coalesce(:portal_quantities::boolean, portal_quantities),
       dunning_hours = nullif(coalesce(:dunning_hours::integer[], dunning_hours), '{}'),
       dunning_by_reason = coalesce(:dunning_by_reason::boolean, dunning_by_reason),
       dunning_end = coalesce(:dunning_end, dunning_end),
       charge_notice_days = nullif(coalesce(:charge_notice_days::integer, charge_notice_days), 0),
       trials_without_card = coalesce(:trials_without_card::boolean, trials_without_card),
       types_coupons = coalesce(:types_coupons::boolean, types_coupons),
       signs_coupons = coalesce(:signs_coupons::boolean, signs_coupons),
       muted_events = array(
           select distinct e from unnest(muted_events || :muted::text[]) e where e <> all(:unmuted::text[]) order by e)
 where id = :merchant_id
returning id, name, email, time_zone, test_mode, went_live_at, pingback_url, test_pingback_url,
          pingback_format, shipped_goods, slow_methods, created_at, muted_events, app_schemes, saves_cards,
          signs_quantities, signs_line_items, portal_cancels, portal_pauses, portal_plans, portal_quantities,
          dunning_hours, dunning_by_reason, dunning_end, charge_notice_days,
       trials_without_card,
          coalesce(:fees_returned, (select fees_returned from fee_plan where merchant_id = :merchant_id)) as fees_returned;

-- name: go_live(merchant_id, now)^
-- Forms at the live base are live from now on, if the merchant's business profile was accepted.
update merchant
   set test_mode = false
 where id = :merchant_id and went_live_at <= :now
returning id, name, email, time_zone, test_mode, went_live_at, pingback_url, test_pingback_url,
          pingback_format, shipped_goods, slow_methods, created_at, muted_events, app_schemes, saves_cards,
          signs_quantities, signs_line_items, portal_cancels, portal_pauses, portal_plans, portal_quantities,
          dunning_hours, dunning_by_reason, dunning_end, charge_notice_days,
       trials_without_card,
          (select fees_returned from fee_plan where merchant_id = :merchant_id) as fees_returned;

-- name: keys_of(merchant_id)
select merchant_id, id, private_key_sealed, vault_key_id, public_key
  from merchant_key
 where merchant_id = :merchant_id
 order by id desc;

-- name: is_private_key(private_key_lookup)$
-- Whether what was sent is a private key of anybody, valid or not.
select exists (select from merchant_key where private_key_lookup = :private_key_lookup);

-- name: sealed_key(merchant_id, id)^
select merchant_id, id, private_key_sealed, vault_key_id
  from merchant_key
 where merchant_id = :merchant_id and id = :id;

-- name: find_signer(public_key, client_address, minute, now)^
-- Who may have signed a form, and how many forms this client has sent the merchant in this minute: finding and
-- counting are one statement, so no form goes uncounted. Forms whose hash was wrong are counted apart, see count_refused.
with found as (
    select k.merchant_id, k.id, k.private_key_sealed, k.vault_key_id, k.scopes, k.moves_live, m.name, m.test_mode, m.went_live_at, m.test_clock,
           m.suspended_at, m.shipped_goods, m.signs_coupons, m.signs_quantities, m.signs_line_items
      from merchant_key k
      join merchant m on m.id = k.merchant_id
     where k.public_key = :public_key and (k.valid_until is null or k.valid_until > :now)
), counted as (
    insert into form_count as c (merchant_id, client_address, minute, forms)
    select merchant_id, :client_address, :minute, 1 from found
        on conflict (merchant_id, client_address, minute) do update set forms = c.forms + 1
 returning forms
)
select found.merchant_id, found.id, found.private_key_sealed, found.vault_key_id, found.scopes, found.moves_live,
       found.name, found.test_mode, found.went_live_at, found.test_clock, found.suspended_at,
       found.shipped_goods, found.signs_coupons, found.signs_quantities, found.signs_line_items, counted.forms,
       coalesce(refused.forms, 0) as refused, d.copied_at is not null as in_a_copy
  from found
 cross join counted
 cross join deployment d
  left join form_count refused
    on refused.merchant_id = found.merchant_id
   and refused.client_address = 'refused ' || :client_address
   and refused.minute = :minute;

-- name: count_refused(merchant_id, client_address, minute)$
-- One more form of this client whose hash is not the usual one, counted before anything is tried on it: whoever sends
-- any number at once gets a number each.
insert into form_count as c (merchant_id, client_address, minute, forms)
values (:merchant_id, 'refused ' || :client_address, :minute, 1)
    on conflict (merchant_id, client_address, minute) do update set forms = c.forms + 1
returning forms;

-- name: take_back_refused(merchant_id, client_address, minute)!
-- It was genuine, written in another way.
update form_count
   set forms = forms - 1
 where merchant_id = :merchant_id and client_address = 'refused ' || :client_address and minute = :minute;

-- name: forget_form_counts(before)!
delete from form_count where minute < :before;

-- name: log_rejected_form(merchant_id, live, status, reason, fields, hashed, suspect, now, most)!
-- The log is bounded: what exceeds the newest :most of a merchant is dropped with each new line.
with logged as (
    insert into rejected_form (merchant_id, live, at, status, reason, fields, hashed, suspect)
    values (:merchant_id, :live, :now, :status, :reason, :fields, :hashed, :suspect)
)
delete from rejected_form r
 using (
     select at, id
       from rejected_form
      where merchant_id = :merchant_id
      order by at desc, id desc
     offset :most - 1
      limit 100
 ) old
 where r.merchant_id = :merchant_id and r.at = old.at and r.id = old.id;

-- name: rejected_forms(merchant_id, most)
select live, id, at, status, reason, fields, hashed, suspect
  from rejected_form
 where merchant_id = :merchant_id
 order by at desc, id desc
 limit :most;

-- name: list_rejected_forms(merchant_id, live, before_at, before_id, since, until, most)
-- A merchant's log is short (log_rejected_form keeps it so): its key serves both sides.
select live, id, at, status, reason, fields, hashed, suspect
  from rejected_form
 where merchant_id = :merchant_id and at >= :since and at < :until and (at, id) < (:before_at, :before_id)
   and live = :live
 order by at desc, id desc
 limit :most;
