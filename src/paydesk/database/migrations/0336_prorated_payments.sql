-- oldest code: 150
-- What renewals charge with a balance, and what that leaves of it.
alter table payment add column into_balance numeric(20, 4);
comment on column payment.into_balance is
    'of a renewal: how much less than its price it charges, which is put into the balance once it is paid';

create function balance_known() returns trigger
    language plpgsql
    as $$
begin
    if exists (select
                 from subscription s
                where s.merchant_id = new.merchant_id and s.live = new.live and s.id = new.subscription_id
                  and s.balance <> 0) then
        raise exception 'subscription % has a balance, which this code does not charge', new.subscription_id;
    end if;
    return new;
end
$$;
create trigger balance_known before insert on payment for each row
    when (new.renewal and new.subscription_id is not null and new.into_balance is null)
    execute function balance_known();

create function balance_moves() returns trigger
    language plpgsql
    as $$
begin
    update subscription
       set balance = balance + new.into_balance
     where merchant_id = new.merchant_id and live = new.live and id = new.subscription_id;
    return null;
end
$$;
comment on function balance_moves is 'a renewal was paid, whoever writes that down: the balance has what it left, or took';
create trigger balance_moves after update of paid_at on payment for each row
    when (new.into_balance <> 0 and old.paid_at is null and new.paid_at is not null)
    execute function balance_moves();
