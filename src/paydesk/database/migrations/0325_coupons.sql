-- oldest code: 150
-- Coupons of subscriptions. What a coupon leaves of a price is a version of the package like any other, at what is charged;
-- so code of before charges the right price. Triggers bring a subscription to the version at the list price once its coupon
-- has been used up, whoever writes it.
create sequence coupon_id_seq;
create table coupon (
    merchant_id bigint not null,
    live boolean not null,
    id bigint not null default nextval('coupon_id_seq'),
    code text not null,
    percent numeric(5, 2) check (percent > 0 and percent < 100),
    amount numeric(20, 4) check (amount > 0),
    currency text,
    periods integer check (periods > 0),
    valid_from timestamptz,
    valid_until timestamptz,
    most_uses integer check (most_uses > 0),
    most_per_customer integer check (most_per_customer > 0),
    skus text[] not null default '{}',
    active boolean not null default true,
    created_at timestamptz not null,
    primary key (merchant_id, id),
    check ((percent is null) <> (amount is null)),
    check (amount is null or currency is not null)
);
comment on table coupon is 'what takes something off the price of a subscription; its terms never change';
comment on column coupon.code is 'in capital letters; customers may type it in any';
comment on column coupon.currency is 'of what it is for; null for a share of any price';
comment on column coupon.periods is 'how many regular payments it is taken off; null for all of them';
comment on column coupon.skus is 'the packages that it is for; none for all';
create unique index coupon_by_code on coupon (merchant_id, live, code);
-- Serves the team's list, newest first.
create index coupon_by_side on coupon (merchant_id, live, created_at, id);

-- Which checkouts have used a coupon. Whether one still does, its payment says: nothing has to be given back.
create table coupon_use (
    merchant_id bigint not null,
    live boolean not null,
    checkout_id bigint not null,
    coupon_id bigint not null,
    merchant_order_id text not null,
    primary key (merchant_id, checkout_id)
);
create index coupon_use_by_coupon on coupon_use (merchant_id, live, coupon_id);

alter table checkout add column coupon_id bigint, add column undiscounted_id bigint;
comment on column checkout.undiscounted_id is 'of one with a coupon: the one of the same order without it';

alter table merchant
    add column types_coupons boolean not null default false,
    add column signs_coupons boolean not null default false;
comment on column merchant.types_coupons is 'whether customers may type a coupon on the checkout page';
comment on column merchant.signs_coupons is 'whether recurring_coupon is read in forms';

alter table package_version
    add column list_version_id bigint,
    add column list_name text,
    add column discount_periods integer;
comment on column package_version.list_version_id is
    'of one that a coupon has made: the version at the price that it was taken off, which comes after it';
comment on column package_version.list_name is
    'of one that a coupon has made: its name as people read it, since its own is one that no form can send';
comment on column package_version.discount_periods is 'for how many regular payments it holds; null for all of them';

alter table subscription add column discounted_until integer;
comment on column subscription.discounted_until is 'the last period of its coupon; null if there is none, or no last one';

-- A name that code of before takes for none that a form names, and that reads as the name it begins with: what follows is
-- written in digits that nobody sees.
create function discounted_name(name text, list_version_id bigint, periods integer) returns text
    language sql immutable
    return name || translate(list_version_id || '.' || coalesce(periods, 0), '0123456789.',
                             U&'\+0E0030\+0E0031\+0E0032\+0E0033\+0E0034\+0E0035\+0E0036\+0E0037\+0E0038\+0E0039\+0E002E');

-- How many have used a coupon, or are about to: those whose payment has not come to nothing. What one checkout takes can
-- be left aside.
create function uses_of(of_merchant bigint, of_live boolean, of_coupon bigint, but_checkout bigint) returns bigint
    language sql stable as $$
    select count(*)
      from coupon_use u
      join payment p
        on p.merchant_id = u.merchant_id and p.live = u.live and p.merchant_order_id = u.merchant_order_id
       and not p.renewal and p.checkout_id = u.checkout_id
     where u.merchant_id = of_merchant and u.live = of_live and u.coupon_id = of_coupon and u.checkout_id <> but_checkout
       and p.state not in ('declined', 'voided');
$$;

-- The same of one customer, known by their e-mail address.
create function uses_by(of_merchant bigint, of_live boolean, of_coupon bigint, but_checkout bigint, address text)
    returns bigint
    language sql stable as $$
    select count(*)
      from customer c
      join payment p
        on p.merchant_id = c.merchant_id and p.live = c.live and p.customer_id = c.id and not p.renewal
      join coupon_use u on u.merchant_id = p.merchant_id and u.checkout_id = p.checkout_id
     where c.merchant_id = of_merchant and c.live = of_live and lower(c.email) = lower(address)
       and u.coupon_id = of_coupon and u.checkout_id <> but_checkout
       and p.state not in ('declined', 'voided');
$$;

-- Whether a coupon can be used at a checkout, as far as can be said before it is known who pays.
create function coupon_is_open(of_merchant bigint, of_live boolean, of_coupon bigint, of_checkout bigint, at timestamptz)
    returns boolean
    language sql stable as $$
    select coalesce((select q.active and at >= coalesce(q.valid_from, '-infinity')
                            and at < coalesce(q.valid_until, 'infinity')
                            and case when q.most_uses is null then true
                                     else uses_of(of_merchant, of_live, of_coupon, of_checkout) < q.most_uses end
                       from coupon q
                      where q.merchant_id = of_merchant and q.live = of_live and q.id = of_coupon), false);
$$;

-- Whether a checkout may use its coupon, which it then does, if its intent is committed in the same transaction. Of
-- several for the last use, each waits for the one before it, and reads what that has committed: every statement in here
-- has a snapshot of its own.
create function takes_coupon(of_merchant bigint, of_live boolean, of_checkout bigint, of_coupon bigint,
                             order_reference text, address text, at timestamptz) returns boolean
    language plpgsql volatile as $$
declare
    most_by_one integer;
begin
    select most_per_customer into most_by_one
      from coupon
     where merchant_id = of_merchant and live = of_live and id = of_coupon;
    if exists (select
                 from coupon
                where merchant_id = of_merchant and live = of_live and id = of_coupon
                  and coalesce(most_uses, most_per_customer) is not null) then
        perform from coupon where merchant_id = of_merchant and live = of_live and id = of_coupon for no key update;
    end if;
    if not coupon_is_open(of_merchant, of_live, of_coupon, of_checkout, at)
       or most_by_one is not null
          and uses_by(of_merchant, of_live, of_coupon, of_checkout, address) >= most_by_one then
        return false;
    end if;
    insert into coupon_use (merchant_id, live, checkout_id, coupon_id, merchant_order_id)
    values (of_merchant, of_live, of_checkout, of_coupon, order_reference)
        on conflict (merchant_id, checkout_id) do nothing;
    return true;
end
$$;

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

create or replace view package_terms as
select v.merchant_id, v.live, v.id as package_version_id, v.package_id, k.sku_id, k.subscriptions_count,
       coalesce(v.list_name, v.name) as package_name, v.currency, v.price, v.period_length, v.period_unit, v.trial_price,
       v.trial_length, v.trial_unit, v.payment_limit,
       case when v.list_version_id is not null
            then (select l.price
                    from package_version l
                   where l.merchant_id = v.merchant_id and l.id = v.list_version_id)
       end as list_price, v.discount_periods
  from package_version v
  join subscription_package k on k.merchant_id = v.merchant_id and k.live = v.live and k.id = v.package_id;

create or replace view subscription_whole as
select s.merchant_id, s.live, s.id, s.state, s.init_payment_id, s.init_merchant_order_id, s.time_zone, s.anchor,
       s.next_period, s.date_next, s.date_start, s.created_at, s.failures, s.counter, s.paid_number_counter,
       s.date_active, s.date_paid, s.date_end, s.date_expired, s.date_cancelled, s.date_stopped, s.cancelled_by,
       s.revision, s.charging_attempt_id, s.portal_token, s.terms_agreed, s.card_id, s.customer_id, s.acquirer,
       s.network_reference, s.sign_version, s.key_id, s.pingback_url, u.email,
       t.package_version_id, t.package_id, t.sku_id, t.subscriptions_count, t.package_name, t.currency, t.price,
       t.period_length, t.period_unit, t.trial_price, t.trial_length, t.trial_unit, t.payment_limit,
       coalesce(s.skipped, 0) as skipped, s.portal_seed, t.list_price, t.discount_periods
  from subscription s
  join package_terms t
    on t.merchant_id = s.merchant_id and t.live = s.live and t.package_version_id = s.package_version_id
  join customer u on u.merchant_id = s.merchant_id and u.live = s.live and u.id = s.customer_id;

create or replace view subscription_planned as
select w.merchant_id, w.live, w.id, w.state, w.init_payment_id, w.init_merchant_order_id, w.time_zone, w.anchor,
       w.next_period, w.date_next, w.date_start, w.created_at, w.failures, w.counter, w.paid_number_counter,
       w.date_active, w.date_paid, w.date_end, w.date_expired, w.date_cancelled, w.date_stopped, w.cancelled_by,
       w.revision, w.charging_attempt_id, w.portal_token, w.terms_agreed, w.card_id, w.customer_id, w.acquirer,
       w.network_reference, w.sign_version, w.key_id, w.pingback_url, w.email,
       w.package_version_id, w.package_id, w.sku_id, w.subscriptions_count, w.package_name, w.currency, w.price,
       w.period_length, w.period_unit, w.trial_price, w.trial_length, w.trial_unit, w.payment_limit, w.skipped,
       w.portal_seed, c.type as change_type, c.due_at as change_due_at, c.since as change_since,
       c.asked_by as change_by,
       case when c.package_version_id is not null
            then (select to_jsonb(t)::text
                    from package_terms t
                   where t.merchant_id = c.merchant_id and t.live = c.live
                     and t.package_version_id = c.package_version_id)
       end as change_terms,
       m.extra_events @> array['subscription_paused'] as tells_pauses, w.list_price, w.discount_periods
  from subscription_whole w
  join merchant m on m.id = w.merchant_id
  left join subscription_change c
    on c.merchant_id = w.merchant_id and c.live = w.live and c.subscription_id = w.id and c.state = 'open';
