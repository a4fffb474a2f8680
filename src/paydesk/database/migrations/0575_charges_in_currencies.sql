-- oldest code: 150
-- Whoever charges a balance rounds it by the currency itself: code of before, which may run beside the steps that wrote
-- charge_digits, writes the digits of ISO 4217 again, and acquirers refuse a charge of 10.125 dinars at every try.
create function charge_digits(currency text, known integer) returns integer
    language sql immutable
    as $$
    select case when currency in ('BHD', 'IQD', 'JOD', 'KWD', 'LYD', 'OMR', 'TND') then 2
                when currency = 'MGA' then 0
                else known end
    $$;
comment on function charge_digits is
    'the decimals that a charge may have, as acquirers take them, whatever a row of code of before says';

create function next_charge(price numeric, balance numeric, currency text, digits integer, at_least numeric)
    returns numeric
    language sql immutable
    as $$ select next_charge(price, balance, charge_digits(currency, digits), at_least) $$;
comment on function next_charge(numeric, numeric, text, integer, numeric) is
    'what a renewal charges with a balance, rounded once, half-even, to what acquirers take of its currency';

create function chargeable(amount numeric, into_balance numeric, currency text) returns numeric
    language sql immutable
    as $$ select case when into_balance <> 0 then next_charge(amount, 0, currency, 4, 0) else amount end $$;
comment on function chargeable is
    'what is tried again of a renewal that declined: with a balance, rounded to what acquirers take of its currency';
