-- Fees have amounts per currency: 15 is a fee in dollars, and next to nothing in yen.

create table currency_unit (
    currency text primary key,
    units numeric not null check (units > 0)
);
comment on table currency_unit is 'how an amount set for dollars, euros and pounds is multiplied in other currencies; paydesk/core/units.py';
insert into currency_unit (currency, units)
select currency, units from (values
    ('BHD', 0.2), ('KWD', 0.2), ('OMR', 0.2),
    ('JOD', 0.5),
    ('AED', 2), ('GEL', 2), ('ILS', 2), ('MYR', 2), ('PEN', 2), ('PLN', 2), ('QAR', 2), ('RON', 2), ('SAR', 2), ('TND', 2),
    ('BOB', 5), ('BRL', 5), ('CNY', 5), ('DKK', 5), ('GTQ', 5), ('HKD', 5), ('MAD', 5), ('MOP', 5), ('SEK', 5), ('TTD', 5),
    ('BWP', 10), ('GHS', 10), ('MDL', 10), ('MXN', 10), ('NAD', 10), ('NOK', 10), ('SCR', 10), ('ZAR', 10),
    ('CZK', 20), ('EGP', 20), ('HNL', 20), ('MUR', 20), ('NIO', 20), ('THB', 20), ('TRY', 20), ('TWD', 20), ('UAH', 20), ('UYU', 20), ('ZMW', 20),
    ('AFN', 50), ('ALL', 50), ('DOP', 50), ('INR', 50), ('MKD', 50), ('PHP', 50), ('RUB', 50),
    ('BDT', 100), ('DJF', 100), ('DZD', 100), ('ETB', 100), ('ISK', 100), ('JMD', 100), ('JPY', 100), ('KES', 100), ('NPR', 100), ('RSD', 100), ('VUV', 100), ('XPF', 100),
    ('AMD', 200), ('HUF', 200), ('KMF', 200), ('KZT', 200), ('LKR', 200), ('PKR', 200), ('YER', 200),
    ('CLP', 500), ('CRC', 500), ('SOS', 500), ('XAF', 500), ('XOF', 500),
    ('ARS', 1000), ('IQD', 1000), ('KRW', 1000), ('MWK', 1000), ('NGN', 1000), ('RWF', 1000),
    ('BIF', 2000), ('COP', 2000), ('KHR', 2000), ('MGA', 2000), ('MMK', 2000), ('MNT', 2000), ('TZS', 2000), ('UGX', 2000),
    ('GNF', 5000), ('PYG', 5000),
    ('IDR', 10000), ('UZS', 10000),
    ('LAK', 20000), ('VND', 20000),
    ('LBP', 50000)
) as known (currency, units);

create table fee_amount (
    merchant_id bigint not null references merchant (id),
    currency text not null,
    fixed numeric(20, 4) not null check (fixed >= 0),
    chargeback_fee numeric(20, 4) not null check (chargeback_fee >= 0),
    primary key (merchant_id, currency)
);
comment on table fee_amount is 'a merchant''s own amounts in a currency; in others those of its fee_plan, times currency_unit';

-- Amounts that were agreed with a merchant stay what they are in the currencies that it takes.
insert into fee_amount (merchant_id, currency, fixed, chargeback_fee)
select distinct f.merchant_id, u.currency, f.fixed, f.chargeback_fee
  from fee_plan f
  join payment p on p.merchant_id = f.merchant_id
  join currency_unit u on u.currency = p.currency
 where (f.fixed, f.chargeback_fee) is distinct from (0.30, 15);

create function fees_in(of_merchant bigint, in_currency text)
returns table (rate numeric, fixed numeric, reserve_rate numeric, fees_returned boolean, chargeback_fee numeric)
language sql stable as $$
    select f.rate, coalesce(a.fixed, f.fixed * coalesce(u.units, 1)), f.reserve_rate, f.fees_returned,
           coalesce(a.chargeback_fee, f.chargeback_fee * coalesce(u.units, 1))
      from fee_plan f
      left join fee_amount a on a.merchant_id = f.merchant_id and a.currency = in_currency
      left join currency_unit u on u.currency = in_currency
     where f.merchant_id = of_merchant
$$;
comment on function fees_in is 'what a merchant pays for a payment in a currency, in its main units';
