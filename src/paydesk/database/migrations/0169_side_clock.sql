-- oldest code: 150
-- How far the time of one side of a merchant runs ahead of real time: the live side's never does, the test side's by
-- its test clock. An expression, which is worked out as a part of its statement: a claim that compares by a side's time
-- keeps its index.
create function side_clock(of_live boolean, test_clock interval) returns interval
language sql immutable parallel safe as $$
    select case when of_live then interval '0' else test_clock end
$$;
comment on function side_clock is 'a side''s time is real time and this; test_clock is its merchant''s';
