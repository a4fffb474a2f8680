-- oldest code: 150
-- For how long a reserve is held when nothing else was agreed stands in the code alone, which names it for each new
-- merchant. Code of before leaves it out: what it opens gets the days that it knows, until a later step ends this.
alter table merchant alter column reserve_days drop default;

create function merchant_of_the_version_before() returns trigger language plpgsql as $$
begin
    new.reserve_days := 180;
    return new;
end $$;

create trigger merchant_of_the_version_before before insert on merchant
    for each row when (new.reserve_days is null) execute function merchant_of_the_version_before();
