-- The rules that compare the simulated bank's own record with what Paydesk believes. Each names the purchase's key, too, and
-- what the bank had then: what has moved since is no difference.

-- name: bank_money_known(merchant_id)
-- A key that nobody knows can't be said to be of any merchant. Attempts that a reset of a test clock deleted are known.
select 'simulated bank' as table_name, null::bigint as merchant_id, b.key as id, b.key, b.net, b.held,
       format('took %s and holds %s %s under a key that no attempt has', b.net, b.held, b.currency) as detail
  from bank_purchase b
  left join payment_attempt a on a.idempotency_key = b.key and a.acquirer = 'simulator'
 where :merchant_id::bigint is null and a.id is null and b.net + b.held <> 0
   and not exists (select from forgotten_attempt f where f.idempotency_key = b.key and f.acquirer = 'simulator');

-- name: approved_money_at_bank(merchant_id)
-- An attempt over 0 only checked the card, so that no money is to be found. What is on its way may have arrived or not:
-- a refund in progress counts either way, and while a capture or void is under way no more is there than was approved.
-- A refund that failed and waited for its merchant to come here is on its way into the books, unless an operator was told.
select 'payment_attempt' as table_name, a.merchant_id, a.id, a.idempotency_key as key, b.net, b.held,
       format('is approved for %s %s and its payment is %s, but the bank ', a.amount, a.currency, p.state)
       || case when b.key is null then 'does not know it'
               else format('took %s and holds %s %s, and %s is charged back', b.net, b.held, b.currency, b.charged_back)
           end as detail
  from payment_attempt a
  join payment p on p.merchant_id = a.merchant_id and p.id = a.payment_id
  left join bank_purchase b on b.key = a.idempotency_key
 where (:merchant_id::bigint is null or a.merchant_id = :merchant_id)
   and a.state = 'approved' and a.acquirer = 'simulator'
   and (a.amount <> 0 or b.net + b.held <> 0)
   and (b.currency is distinct from a.currency
        or case when p.moving_id is not null
                    then least(b.net, b.held) < 0 or greatest(b.net, b.held) > 0
                         and (b.net + b.held, least(b.net, b.held)) is distinct from (a.amount, 0::numeric)
                when p.state in ('captured', 'partially_refunded', 'refunded', 'charged_back')
                    then b.held <> 0 or b.net + b.charged_back not between a.amount - p.refunded - p.refunding
                                                                       and a.amount - p.refunded
                else (b.net + b.charged_back, b.held) is distinct from
                     (0::numeric, case when p.state = 'authorized' then a.amount else 0 end)
            end)
   and not exists (select
                     from movement m
                     join failed_refund_waiting w on w.acquirer = 'simulator' and w.told ->> 'key' = m.idempotency_key
                    where m.merchant_id = a.merchant_id and m.live = a.live and m.payment_id = a.payment_id
                      and m.kind = 'refund' and m.state = 'done' and w.next_at is not null and w.alarmed_at is null
                      and not exists (select
                                        from alarm o
                                       where o.kind = 'set_aside' and o.subject = w.acquirer_reference
                                         and o.settled_at is null));

-- name: chargebacks_at_bank(merchant_id)
-- How a dispute opened or ended is news until it was read, up to its line of the bank's record; so is one that was read and
-- waits for what passes by itself, of which no operator was told.
select 'payment' as table_name, p.merchant_id, p.id, a.idempotency_key as key, b.net, b.held,
       format('has %s %s charged back, but at the bank it is %s', p.charged_back, p.currency, b.charged_back) as detail
  from payment_attempt a
  join payment p on p.merchant_id = a.merchant_id and p.id = a.payment_id and p.attempt_id = a.id
  join bank_purchase b on b.key = a.idempotency_key
 where (:merchant_id::bigint is null or a.merchant_id = :merchant_id)
   and a.state = 'approved' and a.acquirer = 'simulator' and b.charged_back <> p.charged_back
   and p.refunding = 0 and p.moving_id is null
   and (b.disputed_at_line is null
        or exists (select from dispute_reading r
                    where r.acquirer = 'simulator' and nullif(r.place, '')::bigint >= b.disputed_at_line)
           and not exists (select from dispute_waiting w
                            where w.acquirer = 'simulator' and w.told ->> 'of_key' = a.idempotency_key
                              and not exists (select from alarm o
                                               where o.kind = 'dispute_waits'
                                                 and o.subject = format('dispute %s at simulator', w.acquirer_reference))));

-- name: given_up_without_money(merchant_id)
-- An attempt that is still open may have been approved already: then the janitor is about to find out. What the bank
-- would not give back, an operator may have settled otherwise.
select 'payment_attempt' as table_name, a.merchant_id, a.id, a.idempotency_key as key, b.net, b.held,
       format('is %s, but the bank took %s and holds %s %s', a.state, b.net, b.held, b.currency) as detail
  from payment_attempt a
  join bank_purchase b on b.key = a.idempotency_key
 where (:merchant_id::bigint is null or a.merchant_id = :merchant_id)
   and a.state in ('declined', 'failed', 'abandoned', 'voided') and a.acquirer = 'simulator'
   and b.net + b.held <> 0
   and not exists (select from purchase_given_back g
                    where g.acquirer = a.acquirer and g.idempotency_key = a.idempotency_key and g.because <> '');
