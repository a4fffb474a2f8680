-- Processes of the version before run until they are restarted, and know no sums and steps of a chargeback. What they
-- write, which names no currency of the dispute, gets them; else the dispute would be taken for one without money, and
-- booked once more. A later version may drop this.
create function chargeback_of_the_version_before() returns trigger language plpgsql as $$
begin
    if tg_op = 'INSERT' then
        new.taken := new.amount;
        new.takes := 1;
        new.ends_subscription := new.state in ('open', 'lost');
    end if;
    if new.state = 'won' and new.returned < new.taken and (tg_op = 'INSERT' or old.state <> 'won') then
        new.returned := new.taken;
        new.returns := new.returns + 1;
    end if;
    return new;
end $$;

create trigger chargeback_of_the_version_before before insert or update of state on chargeback
    for each row when (new.disputed_currency is null) execute function chargeback_of_the_version_before();
