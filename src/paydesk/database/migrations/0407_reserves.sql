-- oldest code: 150
-- How much of a side's reserve is released when: sums, so that a calendar of a million payments is read in a moment. A
-- trigger writes down what settles, is released or given back, code of before included; money that has not settled yet,
-- as customers pay it, never comes to it. Changes are folded into the sums later, out of the way of who moves money.
create sequence reserve_change_id_seq;
create table reserve_change (
    merchant_id bigint not null,
    live boolean not null,
    payment_id bigint not null,
    id bigint not null default nextval('reserve_change_id_seq'),
    currency text not null,
    due_at timestamptz not null,
    amount numeric(20, 4) not null,
    primary key (merchant_id, live, payment_id, id)
);
comment on table reserve_change is
    'by how much the reserve moved that is released within a quarter of an hour, as far as it is not folded';

create table reserve_due (
    merchant_id bigint not null,
    live boolean not null,
    currency text not null,
    due_at timestamptz not null,
    amount numeric(24, 4) not null,
    primary key (merchant_id, live, currency, due_at)
) with (fillfactor = 70);
comment on table reserve_due is 'how much of the reserve is released within a quarter of an hour; changes add to it';

create function quarter_of(at timestamptz) returns timestamptz
    language sql immutable parallel safe
    return date_bin(interval '15 minutes', at, timestamptz '2000-01-01 00:00:00+00');
comment on function quarter_of is 'the quarter of an hour: days of all time zones begin with one';

create function reserve_moves() returns trigger
    language plpgsql
    as $$
declare
    one payment;
begin
    one := case when tg_op = 'DELETE' then old else new end;
    insert into reserve_change (merchant_id, live, payment_id, currency, due_at, amount)
    select one.merchant_id, one.live, one.id, one.currency, c.due_at, sum(c.amount)
      from (select quarter_of(old.funds_due_at) as due_at, old.reserve_taken - old.reserve as amount
             where tg_op <> 'INSERT' and old.settled_at is not null
             union all
            select quarter_of(new.funds_due_at), new.reserve - new.reserve_taken
             where tg_op <> 'DELETE' and new.settled_at is not null) c
     where c.due_at is not null
     group by c.due_at
    having sum(c.amount) <> 0;
    return null;
end
$$;
comment on function reserve_moves is 'writes down by how much the reserve of a payment that has settled moved';
create trigger reserve_begins after insert on payment for each row
    when (new.settled_at is not null and new.funds_due_at is not null)
    execute function reserve_moves();
create trigger reserve_moves after update of settled_at, funds_due_at, reserve, reserve_taken on payment for each row
    when ((old.settled_at is not null or new.settled_at is not null)
          and (new.settled_at is null, new.funds_due_at, new.reserve, new.reserve_taken)
              is distinct from (old.settled_at is null, old.funds_due_at, old.reserve, old.reserve_taken))
    execute function reserve_moves();
create trigger reserve_ends after delete on payment for each row
    when (old.settled_at is not null and old.funds_due_at is not null)
    execute function reserve_moves();

-- The same sums as before, said so that the planner counts on few rows: of an id between two bounds that it doesn't know
-- it takes few for likely, of one above a bound a third of the ledger, which it would rather read as a whole.
create or replace function balance_parts(of_merchant bigint, of_live boolean)
returns table (account text, currency text, amount numeric)
language sql stable parallel safe as $$
    select account, currency, amount
      from balance_closing
     where merchant_id = of_merchant and live = of_live
     union all
    select account, currency, amount
      from ledger_entry
     where merchant_id = of_merchant and live = of_live and account in ('pending', 'available', 'reserve')
       and id > (select case when of_live then closed_id else 0 end from ledger_horizon)
       and id <= (select 9223372036854775807)
$$;
