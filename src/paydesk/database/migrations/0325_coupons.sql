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
