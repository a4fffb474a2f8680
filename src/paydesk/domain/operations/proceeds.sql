-- name: accept(id, by, why, now)^
-- An operator takes a finding as it is, once; it stays known as such while it says the same.
update proceeds_finding
   set accepted_at = :now, accepted_by = :by, accepted_why = :why
 where id = :id and settled_at is null and accepted_at is null
returning acquirer, kind, subject, reason;

-- name: set_fee(acquirer, currency, rate, fixed, now)$
insert into acquirer_fee as f (acquirer, currency, rate, fixed, changed_at)
values (:acquirer, :currency, :rate, :fixed, :now)
    on conflict (acquirer, currency) do update
       set rate = excluded.rate, fixed = excluded.fixed, changed_at = excluded.changed_at
returning currency;

-- name: remove_fee(acquirer, currency)$
delete from acquirer_fee where acquirer = :acquirer and currency = :currency returning currency;

-- name: list_fees()
select acquirer, currency, rate, fixed, changed_at from acquirer_fee order by acquirer, currency;

-- name: compare_again(acquirer, currency, since)!
-- The payments of late are held against the contract as it is now.
update balance_line
   set examined_at = null
 where acquirer = :acquirer and at >= :since and currency = :currency and kind = 'capture' and examined_at is not null;
