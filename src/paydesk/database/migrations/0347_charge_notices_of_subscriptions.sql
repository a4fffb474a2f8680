-- oldest code: 150
alter table subscription
    add column is_long boolean,
    add column terms_from integer,
    add column notice_for timestamptz;
comment on column subscription.is_long is 'whether a period is a year or longer; null: not';
comment on column subscription.terms_from is 'the first period by terms that have changed; null: they never have';
comment on column subscription.notice_for is 'the charge that its customer was told of last; null: none by these terms';

create function lasts_a_year(period_length integer, period_unit text) returns boolean
    language sql immutable
    return period_length >= case period_unit when 'year' then 1 when 'month' then 12 when 'week' then 52 else 365 end;

create function terms_are_told() returns trigger
    language plpgsql
    as $$
begin
    select lasts_a_year(v.period_length, v.period_unit) into new.is_long
      from package_version v
     where v.merchant_id = new.merchant_id and v.id = new.package_version_id;
    if tg_op = 'UPDATE' then
        new.terms_from := new.next_period;
        new.notice_for := null;
    end if;
    return new;
end
$$;
comment on function terms_are_told is 'other terms are told of anew';
create trigger terms_are_told before insert on subscription for each row
    execute function terms_are_told();
create trigger terms_are_told_otherwise before update of next_period, package_version_id on subscription for each row
    when (new.package_version_id <> old.package_version_id)
    execute function terms_are_told();
