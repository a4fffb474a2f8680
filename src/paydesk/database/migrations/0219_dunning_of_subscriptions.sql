-- oldest code: 150
-- The plan by which a subscription's failing charge is tried again, as it was when the charge first failed, and what is
-- left of it. Whoever writes down a failure writes here how many there were. Code of before knows no plans and would try
-- by the usual one, or stop: what it writes of a charge that has a plan is refused, so that the look-up of newer code
-- writes down the failure instead.
alter table subscription add column dunning jsonb;
comment on column subscription.dunning is
    'the plan of a charge that is failing, with what is left of it; null: tried again as usual';

create function subscription_dunned() returns trigger
    language plpgsql
    as $$
begin
    if new.failures = 0 then
        new.dunning := null;
    elsif new.failures > old.failures and old.state in ('Trial', 'Active')
          and (new.dunning ->> 'failures')::integer is distinct from new.failures then
        if old.dunning is not null
           or old.failures = 0 and exists (select
                                             from merchant m
                                            where m.id = new.merchant_id
                                              and (m.dunning_hours is not null or m.dunning_by_reason)) then
            raise exception 'subscription % fails by a plan that this code does not know', new.id;
        end if;
    end if;
    return new;
end
$$;
comment on function subscription_dunned is
    'a plan ends with what it is for, and only who knows plans writes down that a charge with one failed';
create trigger subscription_dunned before update on subscription for each row
    when (new.dunning is not null or new.failures > old.failures)
    execute function subscription_dunned();
