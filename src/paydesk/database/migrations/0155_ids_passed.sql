-- oldest code: 140
-- Ids that were given out before they were forgotten are given to nobody else: their sequence is drawn from until it is past
-- the one that is given (and not set, which could undo what others draw meanwhile). They go in tens, from 8 on.
create function pass_id(of_sequence regclass, given bigint) returns bigint
    language sql volatile
    return (select count(nextval(of_sequence))
              from generate_series(1, least((given - coalesce(pg_sequence_last_value(of_sequence), -2) + 9) / 10,
                                            1000000)));
comment on function pass_id is 'draws a million ids at most: no database forgets more';
