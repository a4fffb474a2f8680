-- oldest code: 150
-- Another name for a column, in its first release: both are there, and whoever writes the old one writes both.
alter table payment add column remark text;
create function payment_remark() returns trigger language plpgsql as $$
begin
    new.remark := new.note;
    return new;
end $$;
create trigger payment_remark before insert or update of note on payment
    for each row execute function payment_remark();
