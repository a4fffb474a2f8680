-- oldest code: 150
-- Several deployments may share out merchants: each is a cell, and draws its ids from its number times 10^13 on, so that an
-- id says where it was born, and none comes twice when a merchant moves. 900 cells stay below 2^53.
alter table deployment add column cell smallint not null default 0 check (cell between 0 and 899);
comment on column deployment.cell is 'its ids are this times 10^13 on; set once, before any id is drawn';

-- A step that makes a sequence calls this behind it, before anything draws from it.
create function place_ids() returns void
    language plpgsql as $$
declare
    base constant bigint := (select cell * 10000000000000 from deployment);
    one record;
begin
    for one in
        select format('%I.%I', schemaname, sequencename) as name, base + start_value % 10000000000000 as start, increment_by
          from pg_sequences
         where schemaname = 'public' and base > 0 and start_value < base
         order by 1
    loop
        execute format('alter sequence %s minvalue %s maxvalue %s start %s restart',
                       one.name, one.start, base + 10000000000000 - one.increment_by, one.start);
    end loop;
end $$;
comment on function place_ids is 'puts sequences that are new into the range of this cell; cell 0 keeps what it has';

create function begin_cell(number integer) returns boolean
    language plpgsql as $$
begin
    -- Whoever comes second waits here, and then sees what the first one did.
    if (select cell from deployment for update) <> 0
       or exists (select from pg_sequences where schemaname = 'public' and last_value is not null) then
        return false;
    end if;
    update deployment set cell = number;
    perform place_ids();
    return true;
end $$;
comment on function begin_cell is 'false if it is another cell, or ids were drawn before: a database stays what it is';
