-- oldest code: 150
-- A payment that gets its id of before again, which shops know (domain/payments/forgotten_purchases.sql), is not the one
-- any more that its customer and its card name: it is found by index, as what others wrote. Code of before renames, too.
create function people_name_another() returns trigger
    language plpgsql
    as $$
begin
    new.people_of := null;
    return new;
end
$$;
comment on function people_name_another is 'customer and card of a payment that is renamed are found by index';
create trigger people_name_another before update of id on payment for each row
    when (old.id <> new.id and old.people_of is not null)
    execute function people_name_another();
