-- oldest code: 150
-- A charge in flight that takes long, as one by direct debit or at a bank that does not answer. Many of a side may, for
-- days: what looks for subscriptions that are due leaves these out by its index alone, without looking at their rows.
-- Code of before does not say so; it meets these rows, and leaves them alone.
alter table subscription
    add column charge_takes_long boolean,
    add constraint subscription_charge_takes_long_check
        check (charge_takes_long is null or charging_attempt_id is not null) not valid;
comment on column subscription.charge_takes_long is
    'true once the charge in flight was asked for again, or is said to take days; null without one';

create function charge_is_over() returns trigger
    language plpgsql
    as $$
begin
    new.charge_takes_long := null;
    return new;
end
$$;
comment on function charge_is_over is 'whatever ends a charge ends that it takes long, code of before included';
create trigger charge_is_over before update of charging_attempt_id on subscription for each row
    when (old.charge_takes_long and new.charging_attempt_id is distinct from old.charging_attempt_id)
    execute function charge_is_over();
