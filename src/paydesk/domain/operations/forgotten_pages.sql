-- name: states_named(acquirer, keys)
-- How the attempts behind an acquirer's keys stand; one index probe per merchant finds each. Who replaces the card of a
-- subscription looks after its page.
select a.idempotency_key as key, a.state
  from merchant m
  join payment_attempt a
    on a.merchant_id = m.id and a.idempotency_key = any(:keys::text[]) and a.acquirer = :acquirer
 union all
select c.idempotency_key, 'challenged'
  from merchant m
  join card_change c
    on c.merchant_id = m.id and c.idempotency_key = any(:keys::text[]) and c.acquirer = :acquirer;

-- name: emptied(acquirer, keys)
-- Which of an acquirer's keys are of test sides that were emptied since.
select idempotency_key as key, 'failed' as state
  from forgotten_attempt
 where acquirer = :acquirer and idempotency_key = any(:keys::text[]);

-- name: told_of(acquirer)
-- The pages of an acquirer that the operator's list has.
select substring(subject from '^page (.*) at ') as key, details ->> 'reference' as reference
  from alarm
 where merchant_id = 0 and live and kind = 'not_reconciled' and settled_at is null
   and starts_with(subject, 'page ') and right(subject, length(' at ' || :acquirer)) = ' at ' || :acquirer;
