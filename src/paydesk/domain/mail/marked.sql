-- name: marked_to_tell(kind)
-- Refunds, failures of pending payments, shipments, chargebacks or voids that are still to be told.
select merchant_id, live, id
  from (select 'refunds' as kind, merchant_id, live, id
          from movement
         where kind = 'refund' and state = 'done' and not mailed
         union all
        select 'failures', merchant_id, live, attempt_id
          from hosted_page
         where not mailed
         union all
        select 'shipments', merchant_id, live, id
          from delivery
         where status = 'order_shipped' and not mailed
         union all
        select 'chargebacks', merchant_id, live, id
          from chargeback
         where not mailed
         union all
        select 'voids', merchant_id, live, id
          from movement
         where kind = 'void' and requested_by = 'deadline' and state = 'done' and not mailed) marked
 where kind = :kind
 order by merchant_id, id;

-- name: tell_refunds(real_now, since, keep_test, most, only, prefix, aside_since)^
-- What customers hear of money that was given back; a refund and its mail are marked and queued together.
with due as materialized (
    select merchant_id, id
      from movement
     where kind = 'refund' and state = 'done' and not mailed and (:only::bigint[] is null or id = any(:only))
       and not is_set_aside(merchant_id, live, :prefix || id::text, :aside_since)
       and coalesce(merchant_id <> all (array(select merchant_id from merchant_fence)), true)
     order by merchant_id, id
     limit :most
       for update skip locked
), marked as (
    update movement v
       set mailed = true
      from due
     where v.merchant_id = due.merchant_id and v.id = due.id
 returning v.*
), told as (
    insert into mail (merchant_id, live, kind, recipient, language, facts, once, due_at, created_at)
    select v.merchant_id, v.live, 'refund', case when v.live or :keep_test then u.email else m.email end, u.language,
           jsonb_build_object(
               'payment_id', p.id, 'merchant_order_id', p.merchant_order_id, 'amount', trim_scale(v.amount)::text,
               'currency', v.currency, 'brand', d.brand, 'last4', d.last4,
               'description', coalesce(c.description, t.package_name, i.description, ''),
               'name', concat_ws(' ', nullif(u.first_name, ''), nullif(u.last_name, ''))),
           'refund ' || v.id, :real_now, :real_now
      from marked v
      join merchant m on m.id = v.merchant_id
      join payment p on p.merchant_id = v.merchant_id and p.live = v.live and p.id = v.payment_id
      join customer u on u.merchant_id = p.merchant_id and u.live = p.live and u.id = p.customer_id
      join card d on d.merchant_id = p.merchant_id and d.live = p.live and d.id = p.card_id
      left join checkout c on c.merchant_id = p.merchant_id and c.live = p.live and c.id = p.checkout_id
      left join instrument_charge i
        on i.merchant_id = p.merchant_id and i.live = p.live and i.attempt_id = p.attempt_id
      left join subscription s on s.merchant_id = p.merchant_id and s.live = p.live and s.id = p.subscription_id
      left join package_terms t
        on t.merchant_id = s.merchant_id and t.live = s.live and t.package_version_id = s.package_version_id
     where v.finished_at >= :since and m.customer_mails and (v.live or :keep_test or m.test_mails)
       and u.erased_at is null and u.email <> ''
        on conflict (merchant_id, once) do nothing
 returning id
)
select (select count(*) from marked) as seen, (select count(*) from told) as mails;

-- name: tell_failures(real_now, since, keep_test, most, only, prefix, aside_since)^
-- What customers hear of a payment by a slow method that came to nothing: they waited for word. Nothing is said once the
-- order was tried anew.
with due as materialized (
    select merchant_id, attempt_id
      from hosted_page
     where not mailed and (:only::bigint[] is null or attempt_id = any(:only))
       and not is_set_aside(merchant_id, live, :prefix || attempt_id::text, :aside_since)
       and coalesce(merchant_id <> all (array(select merchant_id from merchant_fence)), true)
     order by merchant_id, attempt_id
     limit :most
       for update skip locked
), marked as (
    update hosted_page v
       set mailed = true
      from due
     where v.merchant_id = due.merchant_id and v.attempt_id = due.attempt_id
 returning v.*
), told as (
    insert into mail (merchant_id, live, kind, recipient, language, facts, once, due_at, created_at)
    select v.merchant_id, v.live, 'payment_failed', case when v.live or :keep_test then u.email else m.email end,
           u.language,
           jsonb_build_object(
               'payment_id', p.id, 'merchant_order_id', p.merchant_order_id, 'amount', trim_scale(a.amount)::text,
               'currency', a.currency, 'description', coalesce(c.description, ''),
               'name', concat_ws(' ', nullif(u.first_name, ''), nullif(u.last_name, ''))),
           'failure of attempt ' || v.attempt_id, :real_now, :real_now
      from marked v
      join merchant m on m.id = v.merchant_id
      join payment_attempt a on a.merchant_id = v.merchant_id and a.live = v.live and a.id = v.attempt_id
      join payment p
        on p.merchant_id = a.merchant_id and p.live = a.live and p.id = a.payment_id and p.attempt_id = a.id
      join customer u on u.merchant_id = p.merchant_id and u.live = p.live and u.id = p.customer_id
      left join checkout c on c.merchant_id = p.merchant_id and c.live = p.live and c.id = p.checkout_id
     where a.finished_at >= :since and m.customer_mails and (v.live or :keep_test or m.test_mails)
       and u.erased_at is null and u.email <> ''
        on conflict (merchant_id, once) do nothing
 returning id
)
select (select count(*) from marked) as seen, (select count(*) from told) as mails;

-- name: tell_shipments(real_now, since, keep_test, most, only, prefix, aside_since)^
-- What customers hear of goods on their way, unless the shop said that it tells them itself (notify_user).
with due as materialized (
    select merchant_id, id
      from delivery
     where status = 'order_shipped' and not mailed and (:only::bigint[] is null or id = any(:only))
       and not is_set_aside(merchant_id, live, :prefix || id::text, :aside_since)
       and coalesce(merchant_id <> all (array(select merchant_id from merchant_fence)), true)
     order by merchant_id, id
     limit :most
       for update skip locked
), marked as (
    update delivery v
       set mailed = true
      from due
     where v.merchant_id = due.merchant_id and v.id = due.id
 returning v.*
), told as (
    insert into mail (merchant_id, live, kind, recipient, language, facts, once, due_at, created_at)
    select v.merchant_id, v.live, 'shipment', case when v.live or :keep_test then u.email else m.email end, u.language,
           jsonb_build_object(
               'payment_id', p.id, 'merchant_order_id', p.merchant_order_id, 'amount', trim_scale(p.amount)::text,
               'currency', p.currency, 'carrier', v.carrier, 'tracking_id', v.tracking_id,
               'tracking_url', v.tracking_url,
               'description', coalesce(nullif(v.product_description, ''), c.description, ''),
               'name', concat_ws(' ', nullif(u.first_name, ''), nullif(u.last_name, ''))),
           'shipment ' || v.id, :real_now, :real_now
      from marked v
      join merchant m on m.id = v.merchant_id
      join payment p on p.merchant_id = v.merchant_id and p.live = v.live and p.id = v.payment_id
      join customer u on u.merchant_id = p.merchant_id and u.live = p.live and u.id = p.customer_id
      left join checkout c on c.merchant_id = p.merchant_id and c.live = p.live and c.id = p.checkout_id
     where v.created_at >= :since and v.notify_user is not false and m.customer_mails
       and (v.live or :keep_test or m.test_mails) and u.erased_at is null and u.email <> ''
        on conflict (merchant_id, once) do nothing
 returning id
)
select (select count(*) from marked) as seen, (select count(*) from told) as mails;

-- name: tell_chargebacks(real_now, since, keep_test, most, only, prefix, aside_since)^
-- What merchants must know at once: a customer's bank took money back. (An inquiry counts as told until it does.)
with due as materialized (
    select merchant_id, id
      from chargeback
     where not mailed and (:only::bigint[] is null or id = any(:only))
       and not is_set_aside(merchant_id, live, :prefix || id::text, :aside_since)
       and coalesce(merchant_id <> all (array(select merchant_id from merchant_fence)), true)
     order by merchant_id, id
     limit :most
       for update skip locked
), marked as (
    update chargeback v
       set mailed = true
      from due
     where v.merchant_id = due.merchant_id and v.id = due.id
 returning v.*
), told as (
    insert into mail (merchant_id, live, kind, recipient, language, facts, once, due_at, created_at)
    select v.merchant_id, v.live, 'chargeback_alert', m.email, 'en',
           jsonb_build_object(
               'merchant_id', v.merchant_id, 'payment_id', p.id, 'merchant_order_id', p.merchant_order_id,
               'amount', trim_scale(v.taken)::text, 'currency', v.currency, 'reason', v.reason,
               'chargeback_id', v.id),
           'chargeback ' || v.id, :real_now, :real_now
      from marked v
      join merchant m on m.id = v.merchant_id
      join payment p on p.merchant_id = v.merchant_id and p.live = v.live and p.id = v.payment_id
     where greatest(v.opened_at, v.told_at) >= :since and (v.live or :keep_test or m.test_mails)
        on conflict (merchant_id, once) do nothing
 returning id
)
select (select count(*) from marked) as seen, (select count(*) from told) as mails;

-- name: tell_voids(real_now, since, keep_test, most, only, prefix, aside_since)^
-- What owners hear of reserved money that went back, because nobody confirmed a shipment in time.
with due as materialized (
    select merchant_id, id
      from movement
     where kind = 'void' and requested_by = 'deadline' and state = 'done' and not mailed
       and (:only::bigint[] is null or id = any(:only))
       and not is_set_aside(merchant_id, live, :prefix || id::text, :aside_since)
       and coalesce(merchant_id <> all (array(select merchant_id from merchant_fence)), true)
     order by merchant_id, id
     limit :most
       for update skip locked
), marked as (
    update movement v
       set mailed = true
      from due
     where v.merchant_id = due.merchant_id and v.id = due.id
 returning v.*
), told as (
    insert into mail (merchant_id, live, kind, recipient, language, facts, once, due_at, created_at)
    select v.merchant_id, v.live, 'authorization_voided', r.email, r.language,
           jsonb_build_object(
               'merchant_id', v.merchant_id, 'payment_id', p.id, 'merchant_order_id', p.merchant_order_id,
               'amount', trim_scale(v.amount)::text, 'currency', v.currency, 'name', r.name),
           'authorization_voided ' || v.id || ' ' || r.person_id, :real_now, :real_now
      from marked v
      join merchant m on m.id = v.merchant_id
      join payment p on p.merchant_id = v.merchant_id and p.live = v.live and p.id = v.payment_id
     cross join lateral mail_owners(v.merchant_id) r
     where v.finished_at >= :since and (v.live or :keep_test or m.test_mails)
        on conflict (merchant_id, once) do nothing
 returning id
)
select (select count(*) from marked) as seen, (select count(*) from told) as mails;
