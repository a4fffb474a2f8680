-- name: may_be_sent(currency)
-- What a new file of a currency would send, or of each: to merchants whose bank account is accepted and waits for nothing,
-- of what is available and in no file yet. What is finer than the currency's digits stays. Who goes to another cell is
-- paid from there.
select b.currency, b.available, m.id as merchant_id, p.decided_at as accepted_at
  from merchant m
  join business_profile p on p.merchant_id = m.id and p.status = 'accepted' and p.iban_sealed is not null
   and (p.payouts_from is null or p.payouts_from <= clock_timestamp())
 cross join lateral (
     select currency, -sum(amount) as available
       from balance_parts(m.id, true)
      where account = 'available' and (:currency::text is null or currency = :currency)
      group by currency
     having sum(amount) < 0
 ) b
 where m.suspended_at is null
   and not exists (select from merchant_fence f where f.merchant_id = m.id)
   and not exists (select from payout_file_line l where l.merchant_id = m.id and l.currency = b.currency and l.open)
 order by m.id, b.currency;

-- name: make_file(currency, request_key, made_by, merchant_ids, amounts, accepted_ats, now)^
-- A file of transfers, of what is in no other one, and not of who has been fenced since that was read (see
-- refuse_while_fenced). Nothing comes back if nothing is left for it.
with named as materialized (
    select nextval('payout_file_id_seq') as id
), lines as (
    insert into payout_file_line (file_id, merchant_id, currency, amount, accepted_at)
    select named.id, w.merchant_id, :currency, w.amount, w.accepted_at
      from named
     cross join unnest(:merchant_ids::bigint[], :amounts::numeric[], :accepted_ats::timestamptz[])
        as w (merchant_id, amount, accepted_at)
        on conflict do nothing
 returning file_id
)
insert into payout_file (id, currency, request_key, made_by, made_at)
select named.id, :currency, :request_key, :made_by, :now
  from named
 where exists (select from lines)
returning id, (select count(*) from lines) as transfers;

-- name: file_of_request(request_key)$
select id from payout_file where request_key = :request_key;

-- name: list_files(before, most)
-- Newest first, each with what it sends.
select f.id, f.currency, f.state, f.made_by, f.made_at, f.finished_at, t.transfers, t.total, t.left_open
  from payout_file f
 cross join lateral (
     select count(*)::integer as transfers, sum(l.amount) as total, count(*) filter (where l.open)::integer as left_open
       from payout_file_line l
      where l.file_id = f.id
 ) t
 where f.id < :before
 order by f.id desc
 limit :most;

-- name: lines_of(file_id)
-- What a file sends, by merchant, with where that goes: null where the account is not the one any more that it was made
-- for.
select l.merchant_id, m.name as merchant_name, m.suspended_at is not null as suspended, l.amount, l.currency, l.payout_id,
       l.open,
       case when same then p.account_holder end as account_holder, case when same then p.iban_sealed end as iban_sealed,
       case when same then p.vault_key_id end as vault_key_id
  from payout_file_line l
  join merchant m on m.id = l.merchant_id
  left join business_profile p on p.merchant_id = l.merchant_id
 cross join lateral (
     select coalesce(p.status = 'accepted' and p.decided_at = l.accepted_at and p.iban_sealed is not null, false) as same
 ) o
 where l.file_id = :file_id
 order by l.merchant_id;

-- name: hold_file(file_id)$
-- A file's state, which nobody else changes meanwhile: what of it is recorded, and whether it is dropped, come one after
-- the other.
select state from payout_file where id = :file_id for no key update;

-- name: recorded(file_id, merchant_id, payout_id, now)!
-- A transfer of a file is recorded; with the last one the file is.
with line as (
    update payout_file_line
       set open = false, payout_id = :payout_id
     where file_id = :file_id and merchant_id = :merchant_id and open
 returning file_id, merchant_id
)
update payout_file f
   set state = 'recorded', finished_at = :now
  from line
 where f.id = line.file_id and f.state = 'made'
   and not exists (select
                     from payout_file_line l
                    where l.file_id = f.id and l.open and l.merchant_id <> line.merchant_id);

-- name: drop_file(file_id, now)$
-- A file that was not sent: what is in it may be sent by another one. None of which something is recorded already.
with dropped as (
    update payout_file f
       set state = 'dropped', finished_at = :now
     where f.id = :file_id and f.state = 'made'
       and not exists (select from payout_file_line l where l.file_id = f.id and l.payout_id is not null)
 returning f.id
), closed as (
    update payout_file_line l
       set open = false
      from dropped
     where l.file_id = dropped.id
)
select id from dropped;

-- name: open_file_of(merchant_id, currency)$
-- The file by which a merchant's money may be on its way.
select file_id from payout_file_line where merchant_id = :merchant_id and currency = :currency and open;

-- name: note_reading(file_id, person_id, operator, client_address, action, now)!
-- Who has got a file has read each bank account in it: that stands in each merchant's log.
insert into audit_entry (merchant_id, at, person_id, operator, client_address, action, subject, details)
select l.merchant_id, :now, :person_id, :operator, :client_address, :action, 'bank account',
       jsonb_build_object('last4', p.iban_last4, 'payout_file', l.file_id)
  from payout_file_line l
  left join business_profile p on p.merchant_id = l.merchant_id
 where l.file_id = :file_id;
