-- oldest code: 140
-- Not all ids go in tens: those of captures, voids, refunds and chargebacks go one by one.
create or replace function pass_id(of_sequence regclass, given bigint) returns bigint
    language sql volatile
    return (select count(nextval(of_sequence))
              from pg_sequence s
             cross join generate_series(1, least((given - coalesce(pg_sequence_last_value(of_sequence),
                                                                   s.seqstart - s.seqincrement) + s.seqincrement - 1)
                                                 / s.seqincrement, 1000000))
             where s.seqrelid = of_sequence);
