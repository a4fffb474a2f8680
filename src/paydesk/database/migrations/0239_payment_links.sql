-- oldest code: 150
-- What a team offers without code: a link that anybody may open to buy what it says.
create sequence payment_link_id_seq;
create table payment_link (
    merchant_id bigint not null,
    live boolean not null,
    id bigint not null default nextval('payment_link_id_seq'),
    seed text not null,
    title text not null,
    description text not null default '',
    picture text not null default '',
    large_picture text not null default '',
    currency text not null,
    price numeric(20, 4),
    monthly_price numeric(20, 4),
    yearly_price numeric(20, 4),
    most_quantity integer not null default 1 check (most_quantity > 0),
    most_sales integer check (most_sales > 0),
    success_url text not null default '',
    active boolean not null default true,
    created_at timestamptz not null,
    changed_at timestamptz not null,
    primary key (merchant_id, id),
    check (price is not null and monthly_price is null and yearly_price is null
           or price is null and coalesce(monthly_price, yearly_price) is not null)
);
comment on column payment_link.seed is 'from which, with the deployment''s secret, its address is made';
comment on column payment_link.picture is 'a name in item_picture, as large_picture; empty: none';
comment on column payment_link.price is 'of one; null where it sells a subscription, by month, by year or as one chooses';
comment on column payment_link.most_sales is 'how many may be sold in all; null: any number';
-- Serves the team's list, newest first.
create index payment_link_by_side on payment_link (merchant_id, live, id);

-- Which checkouts have taken from a link. Whether one still does, its payment says: nothing has to be given back.
create table payment_link_sale (
    merchant_id bigint not null,
    live boolean not null,
    checkout_id bigint not null,
    link_id bigint not null,
    merchant_order_id text not null,
    quantity integer not null,
    primary key (merchant_id, checkout_id)
);
create index payment_link_sale_by_link on payment_link_sale (merchant_id, live, link_id);

-- How many of a link's are sold, or about to be: those whose payment has not come to nothing. What one checkout takes
-- can be left aside.
create function sales_of(of_merchant bigint, of_live boolean, of_link bigint, but_checkout bigint) returns bigint
language sql stable as $$
    select coalesce(sum(s.quantity), 0)::bigint
      from payment_link_sale s
      join payment p
        on p.merchant_id = s.merchant_id and p.live = s.live and p.merchant_order_id = s.merchant_order_id
       and not p.renewal and p.checkout_id = s.checkout_id
     where s.merchant_id = of_merchant and s.live = of_live and s.link_id = of_link and s.checkout_id <> but_checkout
       and p.state not in ('declined', 'voided');
$$;

-- Whether a checkout may take what it asks for, which it then does, if its intent is committed in the same transaction.
-- Of several for the last one, each waits for the one before it, and reads what that has committed: every statement in
-- here has a snapshot of its own.
create function takes_sale(of_merchant bigint, of_live boolean, of_checkout bigint, of_link bigint, wanted integer,
                           order_reference text) returns boolean
language plpgsql volatile as $$
declare
    most integer;
begin
    select most_sales into most
      from payment_link
     where merchant_id = of_merchant and live = of_live and id = of_link;
    if most is not null then
        -- It may have been changed meanwhile, or been taken away.
        select most_sales into most
          from payment_link
         where merchant_id = of_merchant and live = of_live and id = of_link
           for update;
        if most is not null and sales_of(of_merchant, of_live, of_link, of_checkout) + wanted > most then
            return false;
        end if;
    end if;
    insert into payment_link_sale (merchant_id, live, checkout_id, link_id, merchant_order_id, quantity)
    values (of_merchant, of_live, of_checkout, of_link, order_reference, wanted)
        on conflict (merchant_id, checkout_id) do nothing;
    return true;
end
$$;
