-- Until when to wait after the n-th failed try in a row: as before, but from five tries after the first pause on (the
-- tenth of an account) for half an hour at least.
create or replace function entry_pause_until(at timestamptz, tries integer, free integer) returns timestamptz
language sql immutable as $$
    select case when tries < free then '-infinity'::timestamptz
                else at + greatest(least(interval '30 seconds' * power(2, least(tries - free, 10)), interval '1 hour'),
                                   case when tries >= free + 5 then interval '30 minutes' else interval '0' end) end
$$;
