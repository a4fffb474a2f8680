-- name: add_counts(accounts, whats, counts)!
-- What a process has counted since it last told, in the present ten seconds of the database's clock. Rows come in the order
-- of their key, so that two processes wait for each other and don't lock each other out.
insert into acquirer_count as c (account, since, what, count)
select o.account, date_bin('10 seconds', clock_timestamp(), 'epoch'), o.what, o.count
  from unnest(:accounts::text[], :whats::text[], :counts::bigint[]) as o (account, what, count)
    on conflict (account, since, what) do update set count = c.count + excluded.count;

-- name: take_out(window, least, share, kinds, words, first_rest, longest_rest, soon)
-- Takes accounts out of turn of which enough calls of a kind in the window came to nothing, or took too long: by all that
-- every process has counted since the account was last brought back. Only one process gets the row.
with counted as (
    select c.account, k.words, sum(c.count) filter (where c.what = k.kind || 'asked') as asked,
           coalesce(sum(c.count) filter (where c.what in (k.kind || 'unknown', k.kind || 'unreached')), 0) as failed,
           coalesce(sum(c.count) filter (where c.what = k.kind || 'slow'), 0) as slow
      from acquirer_count c
      join unnest(:kinds::text[], :words::text[]) as k (kind, words)
        on c.what in (k.kind || 'asked', k.kind || 'unknown', k.kind || 'unreached', k.kind || 'slow')
      left join acquirer_turn t on t.account = c.account
     where c.since > clock_timestamp() - :window::interval
       and (t.back_at is null or c.since >= t.back_at)
     group by c.account, k.words
), bad as (
    select account, string_agg(asked || ' ' || words || ' in the last minutes: ' || failed || ' without an answer, ' || slow
                || ' answered too slowly', '; ' order by words) as why
      from counted
     where asked >= :least and (failed + slow) * 100 >= asked * :share
     group by account
)
insert into acquirer_turn as t (account, out_since, why, probe_at, rest)
select account, clock_timestamp(), why, clock_timestamp() + :first_rest::interval, :first_rest
  from bad
    on conflict (account) do update
   set out_since = excluded.out_since, why = excluded.why,
       rest = case when t.back_at > clock_timestamp() - :soon::interval then least(t.rest * 2, :longest_rest::interval)
                   else :first_rest end,
       probe_at = clock_timestamp()
           + case when t.back_at > clock_timestamp() - :soon::interval then least(t.rest * 2, :longest_rest::interval)
                  else :first_rest end
 where t.out_since is null
returning account, why;

-- name: out_of_turn()
select account, out_since, why from acquirer_turn where out_since is not null order by account;

-- name: claim_probe(names)
-- The accounts that are to be asked now whether they answer; only one process asks each.
update acquirer_turn
   set probe_at = clock_timestamp() + rest
 where account = any(:names::text[]) and out_since is not null and probe_at <= clock_timestamp()
returning account;

-- name: bring_back(account)$
-- It answers: what was counted of it before says nothing any more.
update acquirer_turn
   set out_since = null, probe_at = null, back_at = clock_timestamp()
 where account = :account and out_since is not null
returning account;

-- name: fold_counts(before)!
-- Steps of ten seconds become one of an hour.
with old as (
    delete from acquirer_count
     where since < date_trunc('hour', :before::timestamptz) and since <> date_trunc('hour', since)
 returning account, date_trunc('hour', since) as hour, what, count
)
insert into acquirer_count as c (account, since, what, count)
select account, hour, what, sum(count) from old group by account, hour, what order by account, hour, what
    on conflict (account, since, what) do update set count = c.count + excluded.count;
