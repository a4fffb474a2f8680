-- What each person has given back in a day without giving the password again, so that many small refunds are bounded too.
create table refund_day (
    merchant_id bigint not null references merchant (id),
    live boolean not null,
    requested_by text not null,
    day date not null,
    units numeric not null check (units > 0),
    primary key (merchant_id, live, requested_by, day)
) with (fillfactor = 70);
comment on column refund_day.units is 'what was asked for, in dollars, euros or pounds, or what counts as one in other currencies (currency_unit)';
-- Serves the housekeeping.
create index refund_day_by_day on refund_day (day);
