-- oldest code: 150
-- locks: merchant
-- What becomes of a subscription whose charge failed at every try. Code of before would stop each: what it writes of a
-- charge whose plan ends otherwise is refused, so that the look-up of newer code writes down the failure instead.
alter table merchant add column dunning_end text not null default 'cancel'
    check (dunning_end in ('cancel', 'keep_open'));
comment on column merchant.dunning_end is
    'what becomes of a subscription after the last try of a charge that failed: cancel, or keep_open';

create or replace function subscription_dunned() returns trigger
    language plpgsql
    as $$
begin
    if new.failures = 0 then
        new.dunning := null;
    elsif new.failures > old.failures and old.state in ('Trial', 'Active') then
        if (new.dunning ->> 'failures')::integer is distinct from new.failures
           and (old.dunning is not null
                or old.failures = 0 and exists (select
                                                  from merchant m
                                                 where m.id = new.merchant_id
                                                   and (m.dunning_hours is not null or m.dunning_by_reason
                                                        or m.dunning_end <> 'cancel')))
           or new.dunning is not null and not new.dunning ? 'end'
           and (old.dunning ->> 'end' <> 'cancel'
                or old.failures = 0 and exists (select
                                                  from merchant m
                                                 where m.id = new.merchant_id and m.dunning_end <> 'cancel')) then
            raise exception 'subscription % fails by a plan that this code does not know', new.id;
        end if;
    end if;
    return new;
end
$$;

-- A subscription that is kept open is charged by its card again, if its customer wants that.
create or replace view card_number_needed as
select merchant_id, card_id
  from subscription
 where date_next is not null or change_id is not null or failures > 0 and state in ('Trial', 'Active')
 union
select a.merchant_id, a.card_id
  from payment_attempt a
  join checkout k on k.merchant_id = a.merchant_id and k.id = a.checkout_id
 where a.lookup_at is not null and a.state in ('processing', 'challenged') and k.package_version_id is not null
 union
select merchant_id, card_id from card_change where lookup_at is not null and state in ('processing', 'challenged')
 union
select s.merchant_id, s.card_id
  from saved_instrument s
  join payment_attempt a on a.merchant_id = s.merchant_id and a.id = s.attempt_id
 where s.removed_at is null and a.state in ('processing', 'challenged', 'approved');
