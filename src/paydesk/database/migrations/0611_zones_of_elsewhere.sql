-- oldest code: 150
-- A payment is written down whatever its merchant's time zone is called: the database may know none by that name, as
-- where a merchant came from another cell, or code of before took it. The days of statistics, and the end of a card's month,
-- are by UTC then.
create function known_zone(named text) returns text
    language plpgsql
    stable
    as $$
begin
    perform statement_timestamp() at time zone named;
    return named;
exception when invalid_parameter_value then
    return 'UTC';
end
$$;
comment on function known_zone is 'a time zone by its name, or UTC where this database knows none of that name';

create or replace function mrr_moves() returns trigger
    language plpgsql
    as $$
declare
    stands numeric;
    before record;
    is_from timestamptz;
    first_month date;
    by_zone text;
begin
    select count(*) as movements, coalesce(sum(m.amount), 0) as amount, max(m.at) as at, max(m.number) as number,
           bool_or(m.kind in ('new', 'converted')) as counted, min(m.began) filter (where m.kind <> 'trial') as began
      into before
      from mrr_movement m
     where m.merchant_id = new.merchant_id and m.subscription_id = new.id;
    if before.movements = 0 then
        by_zone := known_zone(new.time_zone);
        -- It is new, or from before there were movements, and nobody has told its past yet.
        insert into mrr_movement (merchant_id, live, subscription_id, number, kind, currency, amount, at, day, began)
        select new.merchant_id, new.live, new.id, p.number, p.kind, v.currency, p.amount, p.at,
               (p.at at time zone by_zone)::date,
               date_trunc('month', coalesce(min(p.at) filter (where p.kind in ('new', 'converted')) over (), p.at)
                                   at time zone by_zone)::date
          from mrr_past(new.merchant_id, new.id) p
          join package_version v on v.merchant_id = new.merchant_id and v.id = new.package_version_id;
        return null;
    end if;
    stands := mrr_now(new.merchant_id, new.state, new.package_version_id, new.change_id);
    if stands = before.amount and (before.counted or new.state not in ('Cancelled', 'Expired')) then
        return null;
    end if;
    -- When it moved, by its side's time; of two machines whose clocks differ the later.
    if new.state in ('Cancelled', 'Expired') then
        is_from := coalesce(new.date_cancelled, new.date_expired);
    elsif not before.counted then
        is_from := new.date_active;
    else
        select max(greatest(c.created_at, c.finished_at)) into is_from
          from subscription_change c
         where c.merchant_id = new.merchant_id and c.live = new.live and c.subscription_id = new.id;
    end if;
    is_from := greatest(is_from, before.at);
    by_zone := known_zone(new.time_zone);
    first_month := coalesce(case when before.counted then before.began end,
                            date_trunc('month', is_from at time zone by_zone)::date);
    insert into mrr_movement (merchant_id, live, subscription_id, number, kind, currency, amount, at, day, began)
    select new.merchant_id, new.live, new.id, before.number + 1,
           case when not before.counted then case when stands = 0 then 'trial_lost' else 'converted' end
                when stands = 0 then 'churn'
                when before.amount = 0 then 'reactivation'
                when stands > before.amount then 'expansion'
                else 'contraction' end,
           v.currency, stands - before.amount, is_from, (is_from at time zone by_zone)::date, first_month
      from package_version v
     where v.merchant_id = new.merchant_id and v.id = new.package_version_id
       and not exists (select
                         from mrr_movement m
                        where m.merchant_id = new.merchant_id and m.subscription_id = new.id
                          and m.kind = 'trial_lost');
    return null;
end
$$;

create or replace function mrr_discount_ends() returns trigger
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
           is_from, (is_from at time zone known_zone(new.time_zone))::date, before.began
      from package_version v
     where v.merchant_id = new.merchant_id and v.id = new.package_version_id;
    return null;
end
$$;

create or replace function card_expires() returns trigger
    language plpgsql
    as $$
begin
    delete from card_expiry where merchant_id = new.merchant_id and subscription_id = new.id;
    insert into card_expiry (merchant_id, live, subscription_id, card_id, expires_at)
    select new.merchant_id, new.live, new.id, c.id,
           (make_date(c.exp_year, c.exp_month, 1) + interval '1 month') at time zone known_zone(new.time_zone)
      from card c
     where c.merchant_id = new.merchant_id and c.id = new.card_id and c.exp_month between 1 and 12 and c.exp_year > 0
       and c.wallet = '';
    return null;
end
$$;
