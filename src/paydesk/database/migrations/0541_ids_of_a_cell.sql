-- oldest code: 150
-- locks: deployment, directory
-- A merchant may come from a cell that gives out higher ids. Lists, places and "the newest" go by ids, so the cell that it
-- comes to goes on in a higher range before it is there; what a later step of the schema makes begins there, too.
alter table deployment add column ids smallint check (ids between 1 and 899);
comment on column deployment.ids is
    'its ids go on from this times 10^13, since a merchant came from a cell with higher ones; null: from its own number';

create or replace function place_ids() returns void
    language plpgsql as $$
declare
    base constant bigint := (select coalesce(ids, cell) * 10000000000000 from deployment);
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

comment on column deployment.cell is 'its ids are this times 10^13 on at first (see ids); set once, before any id is drawn';
comment on column directory.kind is
    'merchant, public_key, private_key, email, account or ids; later code may know more';
comment on column directory.name is
    'a merchant''s id; the number of a range of ids; of all others a fingerprint, in hex, for an account with its cell''s'
    ' number behind: what is not sealed is not here';
