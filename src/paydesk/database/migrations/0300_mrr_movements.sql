-- oldest code: 150
-- What subscriptions bring in a month, and every movement of it. The trigger writes a movement with what moves a
-- subscription, code of before included; a renewal moves nothing, so that it costs nothing. Days are those of the
-- subscription's calendar. Sums of days are folded together later, out of the way of payments.
create table mrr_movement (
    merchant_id bigint not null,
    live boolean not null,
    subscription_id bigint not null,
    number integer not null,
    kind text not null check (kind in ('trial', 'trial_lost', 'new', 'converted', 'expansion', 'contraction', 'churn',
                                       'reactivation')),
    currency text not null,
    amount numeric(20, 4) not null,
    at timestamptz not null,
    day date not null,
    began date not null,
    folded boolean not null default false,
    primary key (merchant_id, subscription_id, number),
    -- Test data may be deleted as a whole when a test clock is reset; this goes with what it belongs to.
    foreign key (merchant_id, subscription_id) references subscription (merchant_id, id) on delete cascade
);
comment on table mrr_movement is
    'how what a subscription brings in a month has moved: its movements sum to what it brings now';
comment on column mrr_movement.kind is
    'trials bring nothing: of ''trial'' and ''trial_lost'' the amount is 0; ''converted'' is new after a trial';
comment on column mrr_movement.began is 'the first day of the month in which the subscription began to count';
comment on column mrr_movement.folded is 'whether it is counted in mrr_day';
-- Serves a range of days as a file.
create index mrr_movement_by_day on mrr_movement (merchant_id, live, day, subscription_id, number);
-- Serves the folding, and what is not folded yet.
create index mrr_movement_to_fold on mrr_movement (merchant_id, live, day) where not folded;

create table mrr_day (
    merchant_id bigint not null,
    live boolean not null,
    currency text not null,
    day date not null,
    kind text not null,
    began date not null,
    amount numeric(24, 4) not null,
    movements bigint not null,
    primary key (merchant_id, live, currency, day, kind, began)
) with (fillfactor = 70);
comment on table mrr_day is 'sums of the movements of a day that were folded';

create function mrr_of(price numeric, period_length integer, period_unit text) returns numeric
    language sql immutable
    return round(price * case period_unit when 'day' then 30.436875 when 'week' then 30.436875 / 7
                                          when 'month' then 1 else 1.0 / 12 end / period_length, 4);
comment on function mrr_of is 'a price in a month: a year has 365.2425 days, so a month 30.436875';

create function mrr_now(of_merchant_id bigint, state text, version_id bigint, open_change_id bigint) returns numeric
    language sql stable
    return case when state = 'Active'
                     and not exists (select
                                       from subscription_change c
                                      where c.merchant_id = of_merchant_id and c.id = open_change_id
                                        and c.type = 'resume' and c.state = 'open')
                then (select mrr_of(v.price, v.period_length, v.period_unit)
                        from package_version v
                       where v.merchant_id = of_merchant_id and v.id = version_id)
                else 0 end;
comment on function mrr_now is 'what a subscription brings in a month: nothing in its trial, paused, or ended';

create function mrr_past(of_merchant_id bigint, subscription_id bigint)
    returns table (number bigint, kind text, amount numeric, at timestamptz)
    language sql stable
    as $$
    with s as (
        select *, coalesce(date_cancelled, date_expired) as ended, date_active is distinct from date_start as had_trial
          from subscription
         where merchant_id = of_merchant_id and id = subscription_id
    ), bent as (
        select c.*
          from s
          join subscription_change c on c.merchant_id = s.merchant_id and c.live = s.live and c.subscription_id = s.id
    ), moments as (
        select m.at
          from s
         cross join lateral (
             select s.date_active as at
              union select s.ended
              union select finished_at from bent where type = 'change' and state = 'done'
              union select since from bent where type = 'resume'
              union select finished_at from bent where type = 'resume'
         ) m
         where m.at >= s.date_active
    ), stands as (
        select m.at,
               case when m.at = max(m.at) over ()
                    then mrr_now(s.merchant_id, s.state, s.package_version_id, s.change_id)
                    when m.at >= s.ended
                         or exists (select
                                      from bent b
                                     where b.type = 'resume' and b.since <= m.at
                                       and (b.finished_at is null or b.finished_at > m.at)) then 0
                    else (select mrr_of(v.price, v.period_length, v.period_unit)
                            from package_version v
                           where v.merchant_id = s.merchant_id
                             and v.id = coalesce((select b.package_version_id
                                                    from bent b
                                                   where b.type = 'change' and b.state = 'done'
                                                     and b.finished_at <= m.at
                                                   order by b.finished_at desc, b.id desc
                                                   limit 1),
                                                 (select k.package_version_id
                                                    from payment p
                                                    join checkout k
                                                      on k.merchant_id = p.merchant_id and k.id = p.checkout_id
                                                   where p.merchant_id = s.merchant_id and p.id = s.init_payment_id),
                                                 s.package_version_id)) end as amount
          from s
         cross join moments m
    ), moved as (
        select t.at, t.amount, lag(t.amount, 1, 0.0) over (order by t.at) as before
          from stands t
    ), told as (
        select 'trial' as kind, 0.0 as amount, s.date_start as at, 0 as step
          from s
         where s.had_trial
         union all
        select 'trial_lost', 0.0, s.ended, 1
          from s
         where s.had_trial and s.ended <= coalesce(s.date_active, 'infinity')
         union all
        select case when row_number() over (order by m.at) = 1
                    then case when s.had_trial then 'converted' else 'new' end
                    when m.amount = 0 then 'churn'
                    when m.before = 0 then 'reactivation'
                    when m.amount > m.before then 'expansion'
                    else 'contraction' end,
               m.amount - m.before, m.at, 1
          from s
         cross join moved m
         where m.amount <> m.before
    )
    select row_number() over (order by t.at, t.step), t.kind, t.amount, t.at
      from told t
    $$;
comment on function mrr_past is 'the movements of a subscription, as far as what is stored of it tells them';

create function mrr_moves() returns trigger
    language plpgsql
    as $$
declare
    stands numeric;
    before record;
    is_from timestamptz;
    first_month date;
begin
    select count(*) as movements, coalesce(sum(m.amount), 0) as amount, max(m.at) as at, max(m.number) as number,
           bool_or(m.kind in ('new', 'converted')) as counted, min(m.began) filter (where m.kind <> 'trial') as began
      into before
      from mrr_movement m
     where m.merchant_id = new.merchant_id and m.subscription_id = new.id;
    if before.movements = 0 then
        -- It is new, or from before there were movements, and nobody has told its past yet.
        insert into mrr_movement (merchant_id, live, subscription_id, number, kind, currency, amount, at, day, began)
        select new.merchant_id, new.live, new.id, p.number, p.kind, v.currency, p.amount, p.at,
               (p.at at time zone new.time_zone)::date,
               date_trunc('month', coalesce(min(p.at) filter (where p.kind in ('new', 'converted')) over (), p.at)
                                   at time zone new.time_zone)::date
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
    first_month := coalesce(case when before.counted then before.began end,
                            date_trunc('month', is_from at time zone new.time_zone)::date);
    insert into mrr_movement (merchant_id, live, subscription_id, number, kind, currency, amount, at, day, began)
    select new.merchant_id, new.live, new.id, before.number + 1,
           case when not before.counted then case when stands = 0 then 'trial_lost' else 'converted' end
                when stands = 0 then 'churn'
                when before.amount = 0 then 'reactivation'
                when stands > before.amount then 'expansion'
                else 'contraction' end,
           v.currency, stands - before.amount, is_from, (is_from at time zone new.time_zone)::date, first_month
      from package_version v
     where v.merchant_id = new.merchant_id and v.id = new.package_version_id
       and not exists (select
                         from mrr_movement m
                        where m.merchant_id = new.merchant_id and m.subscription_id = new.id
                          and m.kind = 'trial_lost');
    return null;
end
$$;
comment on function mrr_moves is
    'writes down by how much a subscription brings more or less than its movements sum to; a renewal never comes here';
create trigger mrr_begins after insert on subscription for each row
    execute function mrr_moves();
create trigger mrr_moves after update of state, package_version_id, change_id on subscription for each row
    when ((new.state, new.package_version_id, new.change_id)
          is distinct from (old.state, old.package_version_id, old.change_id))
    execute function mrr_moves();
