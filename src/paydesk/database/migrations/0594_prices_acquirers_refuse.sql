-- oldest code: 150
-- Live prices with decimals that acquirers don't take are refused where they are made; those that rest from before are
-- charged without these decimals, and of a renewal the rest stays in the balance.
create function taken(amount numeric, currency text, live boolean) returns numeric
    language sql immutable
    as $$
    select case when live and trunc(amount, charge_digits(currency, 4)) > 0 then trunc(amount, charge_digits(currency, 4))
                else amount end
    $$;
comment on function taken is
    'what acquirers take of an amount, rounded down, never to nothing; test amounts are taken as they are';

create function renewal_charge(price numeric, balance numeric, currency text, digits integer, at_least numeric, live boolean)
    returns numeric
    language sql immutable
    as $$
    select case when balance = 0 then taken(price, currency, live)
                else next_charge(price, balance, currency, digits, at_least) end
    $$;
comment on function renewal_charge is 'what a renewal charges: its price, or what that comes to with a balance';

create function chargeable(amount numeric, into_balance numeric, currency text, live boolean) returns numeric
    language sql immutable
    as $$
    select case when into_balance <> 0 then next_charge(amount, 0, currency, 4, 0)
                else taken(amount, currency, live) end
    $$;
comment on function chargeable(numeric, numeric, text, boolean) is
    'what is tried again of a renewal that declined, in decimals that acquirers take';

create or replace function balance_moves() returns trigger
    language plpgsql
    as $$
begin
    -- What has a balance from here on is of a currency of which acquirers take fewer decimals: none of these has a least.
    update subscription
       set balance = balance + new.into_balance,
           charge_digits = coalesce(charge_digits, charge_digits(new.currency, 4)),
           least_charge = coalesce(least_charge, 0)
     where merchant_id = new.merchant_id and live = new.live and id = new.subscription_id;
    return null;
end
$$;
