-- name: add_places()!
-- Every merchant has a place from which its events are told.
insert into mail_place (merchant_id)
select m.id from merchant m where not exists (select from mail_place p where p.merchant_id = m.id)
    on conflict (merchant_id) do nothing;

-- name: merchants_to_tell()
-- Everybody who has a place, the longest untold first.
select merchant_id
  from mail_place
 order by moved_at;

-- name: events_to_tell(merchant_id, most_events)
-- The pingbacks that a merchant's next round reads: those after its place, and those to be swept.
select b.merchant_id, b.live, b.id
  from mail_place p
 cross join lateral (
     (select merchant_id, live, id from pingback where merchant_id = p.merchant_id and id > p.read_to
       order by id limit :most_events)
      union
     (select merchant_id, live, id from pingback where merchant_id = p.merchant_id and id > p.swept_to
         and id <= p.sweep_to order by id limit :most_events)
 ) b
 where p.merchant_id = :merchant_id
 order by b.id;

-- name: events_set_aside(prefix, aside_since)
-- The pingbacks whose mails could not be queued, and that were left alone long enough.
select b.merchant_id, b.live, b.id
  from alarm a
  join pingback b on b.merchant_id = a.merchant_id and b.id = substr(a.subject, length(:prefix::text) + 1)::bigint
 where a.settled_at is null and a.kind = 'set_aside' and starts_with(a.subject, :prefix) and a.last_at <= :aside_since
 order by b.id;

-- name: tell_pingbacks(real_now, since, keep_test, sweep_after, most_merchants, most_events, only, events, prefix, aside_since)^
-- What customers hear of payments and of ends of subscriptions. Each such event has one pingback, committed with it, so
-- each merchant's pingbacks are read in the order of their ids, from its place on; place and mails move together. An id
-- may be committed after a higher one was read: what was read is swept once more, when whoever drew an id has long
-- committed or never will. What was told already is not told again.
-- An event that could not be told lately is left out, and so is a merchant of whom nothing could. With :only just these
-- merchants' are told; with :events just these, and nobody's place moves.
-- (Each event looks up its own rows, by key: the planner can't guess how few events there are, and would read whole
-- tables for them.)
with place as materialized (
    select *
      from mail_place p
     where ((select b.id from pingback b where b.merchant_id = p.merchant_id and b.id > p.read_to order by b.id limit 1)
            is not null
            or p.swept_to < p.sweep_to and p.sweep_at <= :real_now)
       and :events::bigint[] is null
       and (:only::bigint[] is null or p.merchant_id = any(:only))
       and not is_set_aside(p.merchant_id, true, 'mails of merchant ' || p.merchant_id, :aside_since)
       and coalesce(p.merchant_id <> all (array(select merchant_id from merchant_fence)), true)
     order by p.moved_at
     limit :most_merchants
       for update skip locked
), fresh as (
    select b.*
      from place p
     cross join lateral (
         select merchant_id, live, id, event, payment_id, subscription_id, created_at
           from pingback
          where merchant_id = p.merchant_id and id > p.read_to
          order by id
          limit :most_events
     ) b
), swept as (
    select b.*
      from place p
     cross join lateral (
         select merchant_id, live, id, event, payment_id, subscription_id, created_at
           from pingback
          where merchant_id = p.merchant_id and id > p.swept_to and id <= p.sweep_to
          order by id
          limit :most_events
     ) b
     where p.sweep_at <= :real_now
), read as (
    select p.merchant_id, p.sweep_to, p.sweep_at,
           coalesce((select max(f.id) from fresh f where f.merchant_id = p.merchant_id), p.read_to) as read_to,
           case when p.sweep_at <= :real_now
                then case when (select count(*) from swept s where s.merchant_id = p.merchant_id) < :most_events
                          then p.sweep_to
                          else (select max(s.id) from swept s where s.merchant_id = p.merchant_id) end
                else p.swept_to end as swept_to
      from place p
), moved as (
    update mail_place p
       set read_to = r.read_to, swept_to = r.swept_to, moved_at = :real_now,
           sweep_to = case when r.swept_to = r.sweep_to then r.read_to else r.sweep_to end,
           sweep_at = case when r.swept_to = r.sweep_to then :real_now::timestamptz + :sweep_after::interval
                           else r.sweep_at end
      from read r
     where p.merchant_id = r.merchant_id
), event as (
    select e.*, m.email as merchant_email
      from (select * from fresh
             union
            select * from swept
             union
            select merchant_id, live, id, event, payment_id, subscription_id, created_at
              from pingback
             where merchant_id = any(:only) and id = any(:events::bigint[])) e
      join merchant m on m.id = e.merchant_id
     where not is_set_aside(e.merchant_id, e.live, :prefix || e.id::text, :aside_since)
       and e.created_at >= :since and m.customer_mails and (e.live or :keep_test or m.test_mails)
), paid as (
    insert into mail (merchant_id, live, kind, recipient, language, facts, once, due_at, created_at)
    select e.merchant_id, e.live,
           case when p.renewal then 'renewal_receipt'
                when p.subscription_id is not null then 'subscription_started'
                else 'receipt' end,
           case when e.live or :keep_test then u.email else e.merchant_email end, u.language,
           jsonb_build_object(
               'payment_id', p.id, 'merchant_order_id', p.merchant_order_id, 'amount', trim_scale(p.amount)::text,
               'currency', p.currency, 'paid_at', p.paid_at, 'reserved', p.state = 'authorized',
               'description', coalesce(c.description, s.package_name, i.description, ''), 'brand', d.brand, 'last4', d.last4,
               'name', concat_ws(' ', nullif(u.first_name, ''), nullif(u.last_name, '')),
               'package', s.package_name, 'terms_agreed', s.terms_agreed, 'date_next', s.date_next,
               'portal_token', s.portal_token, 'portal', s.portal, 'shopper', k.shopper, 'without_card', s.without_card,
               'items', case when p.renewal
                             then (select jsonb_agg(jsonb_build_object(
                                              'description', o.description, 'amount', trim_scale(o.amount)::text)
                                          order by o.id)
                                     from subscription_item o
                                    where o.merchant_id = p.merchant_id and o.live = p.live
                                      and o.subscription_id = p.subscription_id and o.period_number = p.period_number
                                      and o.taken_back_at is null and o.charged_attempt_id is null) end),
           'receipt ' || p.id, :real_now, :real_now
      from event e
     cross join lateral (
         select * from payment where merchant_id = e.merchant_id and live = e.live and id = e.payment_id limit 1
     ) p
     cross join lateral (
         select * from customer where merchant_id = p.merchant_id and live = p.live and id = p.customer_id limit 1
     ) u
     cross join lateral (
         select brand, last4 from card where merchant_id = p.merchant_id and live = p.live and id = p.card_id limit 1
     ) d
      left join lateral (
         select description
           from checkout
          where merchant_id = p.merchant_id and live = p.live and id = p.checkout_id
          limit 1
     ) c on true
      left join lateral (
         -- Of another plan than that was agreed to the shop has told its customer.
         select case when not exists (select
                                        from subscription_change g
                                       where g.merchant_id = s.merchant_id and g.live = s.live
                                         and g.subscription_id = s.id and g.type = 'change' and g.state = 'done')
                     then s.terms_agreed end as terms_agreed, s.date_next, coalesce(v.list_name, v.name) as package_name,
                case when s.portal_seed is null then s.portal_token end as portal_token,
                jsonb_build_object('id', s.id, 'seed', s.portal_seed) as portal, s.acquirer = '' as without_card
           from subscription s
           join package_version v
             on v.merchant_id = s.merchant_id and v.live = s.live and v.id = s.package_version_id
          where s.merchant_id = p.merchant_id and s.live = p.live and s.id = p.subscription_id
          limit 1
     ) s on true
      left join lateral (
         select description
           from instrument_charge
          where p.checkout_id is null and not p.renewal and merchant_id = p.merchant_id and attempt_id = p.attempt_id
          union all
         select coalesce(v.list_name, v.name)
           from subscription_difference g
           join package_version v
             on v.merchant_id = g.merchant_id and v.live = g.live and v.id = g.package_version_id
          where p.checkout_id is null and not p.renewal and g.merchant_id = p.merchant_id
            and g.attempt_id = p.attempt_id
          limit 1
     ) i on true
      left join lateral (
         -- Whoever has the address that was proved may see what is saved under it; another payer's address is not theirs.
         select jsonb_build_object('id', w.id, 'seed', w.seed) as shopper
           from saved_instrument v
           join shopper w
             on w.merchant_id = v.merchant_id and w.live = v.live and w.id = v.shopper_id and w.erased_at is null
            and lower(w.email) = lower(u.email)
          where v.merchant_id = p.merchant_id and v.live = p.live and v.removed_at is null
            and v.id = coalesce((select n.id from saved_instrument n
                                  where n.merchant_id = p.merchant_id and n.attempt_id = p.attempt_id),
                                (select n.instrument_id from instrument_charge n
                                  where n.merchant_id = p.merchant_id and n.attempt_id = p.attempt_id))
          limit 1
     ) k on true
     where e.event = 'payment' and u.erased_at is null and u.email <> ''
       -- A period that began at once was paid by an order of its own, which has its receipt.
       and not (p.renewal and p.amount = 0
                and exists (select
                              from subscription_difference g
                             where g.merchant_id = p.merchant_id and g.live = p.live
                               and g.subscription_id = p.subscription_id and g.period_number = p.period_number - 1
                               and g.anchor is not null and g.state = 'paid'))
        on conflict (merchant_id, once) do nothing
 returning id
), ended as (
    insert into mail (merchant_id, live, kind, recipient, language, facts, once, due_at, created_at)
    select e.merchant_id, e.live, e.event,
           case when e.live or :keep_test then u.email else e.merchant_email end, u.language,
           jsonb_build_object(
               'package', s.package_name, 'merchant_order_id', s.init_merchant_order_id,
               'without_card', s.cancelled_by = 'no_card',
               'brand', (select brand
                           from card
                          where merchant_id = s.merchant_id and live = s.live and id = s.card_id),
               'portal_token', case when s.portal_seed is null then s.portal_token end,
               'portal', jsonb_build_object('id', s.id, 'seed', s.portal_seed),
               'name', concat_ws(' ', nullif(u.first_name, ''), nullif(u.last_name, ''))),
           e.event || ' ' || s.id, :real_now, :real_now
      from event e
     cross join lateral (
         select s.*, coalesce(v.list_name, v.name) as package_name
           from subscription s
           join package_version v
             on v.merchant_id = s.merchant_id and v.live = s.live and v.id = s.package_version_id
          where s.merchant_id = e.merchant_id and s.live = e.live and s.id = e.subscription_id
          limit 1
     ) s
     cross join lateral (
         select * from customer where merchant_id = s.merchant_id and live = s.live and id = s.customer_id limit 1
     ) u
     where e.event in ('subscription_cancelled', 'subscription_stopped') and u.erased_at is null and u.email <> ''
        on conflict (merchant_id, once) do nothing
 returning id
)
select (select count(*) from place) as seen,
       (select count(*) from paid) + (select count(*) from ended) as mails;

-- name: failing_renewals(keep_test)
-- The subscriptions whose customers are told of a renewal that failed, or were told already.
select s.merchant_id, s.live, s.id
  from subscription s
  join merchant m on m.id = s.merchant_id
 where s.failures > 0 and s.state in ('Trial', 'Active') and (s.date_next is not null or s.change_id is null)
   and m.customer_mails and (s.live or :keep_test or m.test_mails)
 order by s.merchant_id, s.id;

-- name: tell_failing_renewals(real_now, keep_test, most, only, prefix, aside_since)$
-- Customers whose renewal failed, and will be tried again or stays open: one mail for each period, with the way to
-- another card. What could not be told lately is left out; with :only just these subscriptions are told of.
with failing as materialized (
    select s.merchant_id, s.live, s.id, s.next_period, s.date_next, s.dunning, s.portal_token, s.portal_seed, s.customer_id, s.card_id,
           s.package_version_id, s.init_merchant_order_id, m.email as merchant_email, s.balance, s.charge_digits,
           s.least_charge
      from subscription s
      join merchant m on m.id = s.merchant_id
     where s.failures > 0 and s.state in ('Trial', 'Active')
       and (s.date_next is not null or s.change_id is null
            or exists (select
                         from subscription_change c
                        where c.merchant_id = s.merchant_id and c.id = s.change_id and c.asked_by = 'retries'
                          and c.due_at is null))
       and m.customer_mails and (s.live or :keep_test or m.test_mails)
       and (:only::bigint[] is null or s.id = any(:only))
       and not is_set_aside(s.merchant_id, s.live, :prefix || s.id::text, :aside_since)
       and (select e.id
              from mail e
             where e.merchant_id = s.merchant_id and e.once = 'renewal_failed ' || s.id || ' ' || s.next_period
             limit 1) is null
     limit :most
), told as (
    insert into mail (merchant_id, live, kind, recipient, language, facts, once, due_at, created_at)
    select f.merchant_id, f.live, 'renewal_failed',
           case when f.live or :keep_test then u.email else f.merchant_email end, u.language,
           jsonb_build_object(
               'package', t.name, 'amount', trim_scale(renewal_charge(t.price, f.balance, t.currency, f.charge_digits,
                                                                          f.least_charge, f.live))::text,
               'currency', t.currency,
               'date_next', f.date_next, 'end', f.dunning ->> 'end', 'brand', d.brand, 'last4', d.last4,
               'portal_token', case when f.portal_seed is null then f.portal_token end,
               'portal', jsonb_build_object('id', f.id, 'seed', f.portal_seed, 'period', f.next_period),
               'merchant_order_id', f.init_merchant_order_id,
               'name', concat_ws(' ', nullif(u.first_name, ''), nullif(u.last_name, ''))),
           'renewal_failed ' || f.id || ' ' || f.next_period, :real_now, :real_now
      from failing f
     cross join lateral (
         select * from customer where merchant_id = f.merchant_id and live = f.live and id = f.customer_id limit 1
     ) u
     cross join lateral (
         select brand, last4 from card where merchant_id = f.merchant_id and live = f.live and id = f.card_id limit 1
     ) d
      join package_version t
        on t.merchant_id = f.merchant_id and t.live = f.live and t.id = f.package_version_id
     where u.erased_at is null and u.email <> ''
        on conflict (merchant_id, once) do nothing
 returning id
)
select count(*) from told;

-- name: tell_failing_endpoints(real_now, keep_test, after_attempts, most_attempts, looked_at, far, only, prefix, aside_since)$
-- Merchants whose server has not taken a pingback for several attempts: one mail a day for each URL, however many
-- pingbacks fail there; around midnight too, where the day's name changes. Told is the oldest pingback for the URL that is
-- still to be sent (not one that had used up its attempts and is sent again by hand: somebody knows already). Only what was
-- made after the last that the URL took counts, as for the account's own page: what fails while later ones arrive is that
-- pingback's trouble, not the endpoint's. One index probe finds each next side. A merchant who could not be told lately
-- is left out; with :only just these merchants are told.
with recursive side as (
    (select merchant_id, live
       from pingback
      where state = 'due'
      order by merchant_id, live
      limit 1)
     union all
    (select next.merchant_id, next.live
       from side
      cross join lateral (
          select b.merchant_id, b.live
            from pingback b
           where b.state = 'due' and (b.merchant_id, b.live) > (side.merchant_id, side.live)
           order by b.merchant_id, b.live
           limit 1
      ) next)
), tried as materialized (
    select b.*
      from side
     cross join lateral (
         select merchant_id, live, id, url, attempts, created_at
           from (select *
                   from pingback
                  where merchant_id = side.merchant_id and live = side.live and state = 'due'
                  order by created_at, id
                  limit :looked_at) oldest
          where attempts >= :after_attempts and attempts < :most_attempts
     ) b
), failing as (
    select distinct on (b.merchant_id, b.live, b.url) b.*,
           'failing_endpoint ' || b.live || ' ' as began, ' ' || md5(b.url) as url_digest
      from tried b
      join (select t.merchant_id, t.live, t.url, ok.created_at as taken_at
              from (select distinct merchant_id, live, url from tried) t
              left join lateral (
                  select created_at
                    from (select url, state, created_at
                            from pingback
                           where merchant_id = t.merchant_id and live = t.live
                           order by created_at desc, id desc
                           limit :far) newest
                   where state = 'acknowledged' and url = t.url
                   order by created_at desc
                   limit 1
              ) ok on true) url
        on url.merchant_id = b.merchant_id and url.live = b.live and url.url = b.url
     where b.created_at > coalesce(url.taken_at, '-infinity')
     order by b.merchant_id, b.live, b.url, b.created_at, b.id
), told as (
    insert into mail (merchant_id, live, kind, recipient, language, facts, once, due_at, created_at)
    select b.merchant_id, b.live, 'failing_endpoint', m.email, 'en',
           jsonb_build_object('merchant_id', b.merchant_id, 'url', b.url, 'attempts', b.attempts, 'since', b.created_at,
                              'status', a.status, 'error', a.error),
           b.began || to_char(:real_now::timestamptz, 'YYYY-MM-DD') || b.url_digest,
           :real_now, :real_now
      from failing b
      join merchant m on m.id = b.merchant_id
      left join lateral (
          select status, error
            from pingback_attempt
           where merchant_id = b.merchant_id and live = b.live and pingback_id = b.id
           order by number desc
           limit 1
      ) a on true
     where (b.live or :keep_test or m.test_mails) and (:only::bigint[] is null or b.merchant_id = any(:only))
       and not is_set_aside(b.merchant_id, true, :prefix || b.merchant_id::text, :aside_since)
       and not exists (
           select from mail e
            where e.merchant_id = b.merchant_id
              and e.once = b.began || to_char(:real_now::timestamptz - interval '1 day', 'YYYY-MM-DD') || b.url_digest
              and e.created_at > :real_now::timestamptz - interval '1 day')
        on conflict (merchant_id, once) do nothing
 returning id
)
select count(*) from told;
