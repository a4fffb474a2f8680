-- oldest code: 150
-- What one side of a merchant is owed, in parts: a balance is a sum, of the closings and of what came after them; test
-- sides have no closings. A function and no view, as it is planned as a part of its statement, which knows the side: so
-- it reads only what is newer than the horizon, and no plan counts on the entries of the other side.
create function balance_parts(of_merchant bigint, of_live boolean)
returns table (account text, currency text, amount numeric)
language sql stable parallel safe as $$
    select account, currency, amount
      from balance_closing
     where merchant_id = of_merchant and live = of_live
     union all
    select account, currency, amount
      from ledger_entry
     where merchant_id = of_merchant and live = of_live and account in ('pending', 'available', 'reserve')
       and id > (select case when of_live then closed_id else 0 end from ledger_horizon)
$$;
comment on function balance_parts is 'what is owed is negative, as in the ledger';
