-- name: outcomes(account, since, until)
-- What became of an account's attempts that began in a time (real), by currency; the sums are of what was approved.
select currency, state, decline_reason, count(*) as count,
       coalesce(sum(amount) filter (where state = 'approved'), 0) as approved
  from payment_attempt
 where acquirer = :account
   and not_after >= :since::timestamptz + interval '1 minute' and not_after < :until::timestamptz + interval '1 minute'
 group by currency, state, decline_reason
 order by currency, state, decline_reason;

-- name: counts(account, since, until)
-- What calls to an account came to in a time, what chose it, and where it was left for another one.
select case when account = :account then what else 'left for ' || account end as what, sum(count)::bigint as count
  from acquirer_count
 where since >= :since and since < :until
   and (account = :account or what = 'from ' || :account)
 group by 1
 order by 1;
