-- name: find_payment(merchant_id, live, id)^
-- A payment with what was bought, how its money is divided, and when the parts of it become available.
select w.*, d.exp_month, d.exp_year, d.holder, d.wallet, coalesce(c.description, i.description, v.name, '') as description, p.captured_at, p.ship_by,
       p.settled_at, p.reserve_released_at, p.refunding, p.charged_back, m.kind as moving, f.fees_returned,
       p.captured_at + make_interval(days => s.settlement_days) as settles_at,
       p.captured_at + make_interval(days => s.reserve_days) as reserve_due_at
  from payment_whole w
  join payment p on p.merchant_id = w.merchant_id and p.live = w.live and p.id = w.id
  join card d on d.merchant_id = p.merchant_id and d.live = p.live and d.id = p.card_id
  join merchant s on s.id = p.merchant_id
  join fee_plan f on f.merchant_id = p.merchant_id
  left join checkout c on c.merchant_id = p.merchant_id and c.live = p.live and c.id = p.checkout_id
  left join instrument_charge i
    on i.merchant_id = p.merchant_id and i.live = p.live and i.attempt_id = p.attempt_id
  left join subscription_difference g
    on g.merchant_id = p.merchant_id and g.live = p.live and g.attempt_id = p.attempt_id
  left join package_version v on v.merchant_id = g.merchant_id and v.live = g.live and v.id = g.package_version_id
  left join movement m on m.merchant_id = p.merchant_id and m.live = p.live and m.id = p.moving_id
 where w.merchant_id = :merchant_id and w.live = :live and w.id = :id;

-- name: bought(merchant_id, live, payment_ids)
-- What some payments were for: an order's own words, those of a charge by the API, or the plan that was renewed.
select p.id, coalesce(nullif(c.description, ''), i.description, v.name, '') as what
  from payment p
  left join checkout c on c.merchant_id = p.merchant_id and c.live = p.live and c.id = p.checkout_id
  left join instrument_charge i
    on i.merchant_id = p.merchant_id and i.live = p.live and i.attempt_id = p.attempt_id
  left join subscription s on s.merchant_id = p.merchant_id and s.live = p.live and s.id = p.subscription_id
  left join package_version v
    on v.merchant_id = s.merchant_id and v.live = s.live and v.id = s.package_version_id
 where p.merchant_id = :merchant_id and p.live = :live and p.id = any(:payment_ids::bigint[]);

-- name: in_each_state(merchant_id, live, states, most)
-- How many payments are in states that are not the usual one, each counted no further than :most by the index by state.
select asked.state, count(one.id) as number
  from unnest(:states::text[]) as asked (state)
  left join lateral (
      select id
        from payment
       where merchant_id = :merchant_id and live = :live and rare_state = asked.state
       limit :most
  ) one on true
 group by asked.state;

-- name: balances_of(merchant_id, live, payment_id)
-- Where a payment's money is, by the ledger's own entries.
select account, -sum(amount) as amount
  from ledger_entry
 where merchant_id = :merchant_id and live = :live and payment_id = :payment_id
 group by account;

-- name: tries_of(merchant_id, live, payment_id, most)
-- All attempts to make a payment, first to last.
select a.id, a.state, a.amount, a.currency, a.decline_reason, a.capture, a.challenge_url <> '' as challenged,
       a.client_address, a.created_at, a.finished_at, c.brand, c.last4, c.wallet,
       exists (select from hosted_page h
                where h.merchant_id = a.merchant_id and h.live = a.live and h.attempt_id = a.id) as hosted
  from payment_attempt a
  join card c on c.merchant_id = a.merchant_id and c.live = a.live and c.id = a.card_id
 where a.merchant_id = :merchant_id and a.live = :live and a.payment_id = :payment_id
 order by a.id
 limit :most;

-- name: movements_of(merchant_id, live, payment_id, most)
-- Captures, voids and refunds, first to last, each with the member of the team who asked for it.
select m.id, m.kind, m.state, m.amount, m.currency, m.requested_by, m.refusal, m.created_at, m.finished_at,
       m.failed_at, coalesce(p.name, '') as person
  from movement m
  left join person p on p.id = substring(m.requested_by from '^person ([0-9]{1,16})$')::bigint
 where m.merchant_id = :merchant_id and m.live = :live and m.payment_id = :payment_id
 order by m.id
 limit :most;

-- name: chargebacks_of(merchant_id, live, payment_id, most)
select id, state, amount, currency, taken, returned, coalesce(disputed_amount, amount) as disputed_amount,
       coalesce(disputed_currency, currency) as disputed_currency, fee, reason, evidence_at, opened_at, closed_at
  from chargeback
 where merchant_id = :merchant_id and live = :live and payment_id = :payment_id
 order by id
 limit :most;

-- name: tellings_of(merchant_id, live, payment_id, most)
-- The pingbacks about a payment, about what was given back of it, and about the end of the subscription that it began.
select id, event, state, attempts, due_at, created_at, finished_at
  from pingback
 where merchant_id = :merchant_id and live = :live
   and id = any(array(select pingbacks_about(:merchant_id, :live, array[:payment_id::bigint])))
 order by id
 limit :most;
