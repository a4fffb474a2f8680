-- When money is posted on a side whose test clock is known already: an expression, so that a statement which posts many
-- payments works it out in passing, where the function that looks the clock up is called for each entry.
create function posted_at_by(clock interval, on_live boolean, wanted timestamptz) returns timestamptz
language sql stable parallel safe as $$
    select case when on_live or clock = interval '0' then greatest(wanted, statement_timestamp()) else wanted end
$$;

create or replace function posted_at(of_merchant bigint, on_live boolean, wanted timestamptz) returns timestamptz
language sql stable as $$
    select posted_at_by((select test_clock from merchant where id = of_merchant), on_live, wanted)
$$;
