-- A client in the field writes a number id in octal. Ids that end in 8 can't be mistaken then: no octal text does.
-- They begin above the highest that was given, so that the octal text of a new one is none of the old ones either.

do $$
declare
    given record;
    highest bigint;
begin
    for given in select * from (values ('payment'), ('subscription')) as kind (name) loop
        execute format('select greatest((select case when is_called then last_value else 0 end from %1$I),'
                       ' (select max(top) from merchant m cross join lateral'
                       '    (select max(id) as top from %2$I where merchant_id = m.id) kept), 0)',
                       given.name || '_id_seq', given.name) into highest;
        execute format('alter sequence %I increment by 10 minvalue 8 maxvalue 9007199254740988 start with 8 restart with %s',
                       given.name || '_id_seq', ((highest + 2) / 10) * 10 + 8);
    end loop;
end $$;

comment on sequence payment_id_seq is 'by tens, ending in 8, below 2^53: see paydesk/core/octal.py';
comment on sequence subscription_id_seq is 'by tens, ending in 8, below 2^53: see paydesk/core/octal.py';
