-- oldest code: 150
alter table subscription add column discounted_until integer;
comment on column subscription.discounted_until is 'the last period of its coupon; null if there is none, or no last one';

create function discount_begins() returns trigger
    language plpgsql
    as $$
declare
    version record;
begin
    select v.list_version_id, v.discount_periods into version
      from package_version v
     where v.merchant_id = new.merchant_id and v.id = new.package_version_id;
    if version.discount_periods is null then
        return new;
    end if;
    if new.next_period > version.discount_periods then
        new.package_version_id := version.list_version_id;
    else
        new.discounted_until := version.discount_periods;
    end if;
    return new;
end
$$;
create trigger discount_begins before insert on subscription for each row
    execute function discount_begins();

create function discount_ends() returns trigger
    language plpgsql
    as $$
begin
    if new.package_version_id = old.package_version_id then
        select coalesce(v.list_version_id, v.id) into new.package_version_id
          from package_version v
         where v.merchant_id = new.merchant_id and v.id = old.package_version_id;
    end if;
    new.discounted_until := null;
    return new;
end
$$;
comment on function discount_ends is 'after the last payment of a coupon comes the list price; another plan ends it sooner';
create trigger discount_ends before update of next_period, package_version_id on subscription for each row
    when (new.discounted_until is not null
          and (new.next_period > new.discounted_until or new.package_version_id <> old.package_version_id))
    execute function discount_ends();

-- The movement of a coupon that is used up is of the day of its last payment; mrr_moves, which comes after it by its name,
-- finds nothing left to write. What moves a trial's end or an end it writes itself.
create function mrr_discount_ends() returns trigger
    language plpgsql
    as $$
declare
    stands numeric;
    before record;
    is_from timestamptz;
begin
    select coalesce(sum(m.amount), 0) as amount, max(m.at) as at, max(m.number) as number,
           bool_or(m.kind in ('new', 'converted')) as counted, min(m.began) filter (where m.kind <> 'trial') as began
      into before
      from mrr_movement m
     where m.merchant_id = new.merchant_id and m.subscription_id = new.id;
    stands := mrr_now(new.merchant_id, new.state, new.package_version_id, new.change_id);
    if not coalesce(before.counted, false) or stands <= before.amount or before.amount = 0 then
        return null;
    end if;
    is_from := greatest(new.date_paid, before.at);
    insert into mrr_movement (merchant_id, live, subscription_id, number, kind, currency, amount, at, day, began)
    select new.merchant_id, new.live, new.id, before.number + 1, 'expansion', v.currency, stands - before.amount,
           is_from, (is_from at time zone new.time_zone)::date, before.began
      from package_version v
     where v.merchant_id = new.merchant_id and v.id = new.package_version_id;
    return null;
end
$$;
create trigger mrr_discount_ends after update of next_period on subscription for each row
    when (old.discounted_until is not null and new.discounted_until is null and new.next_period > old.next_period)
    execute function mrr_discount_ends();
