-- oldest code: 150
-- What merchants sold by quarters of an hour, by days, and of all merchants together: sums of live payments, so that a
-- year of a million payments is read in a moment. A quarter is summed once it is over for a while (sales_closing). What
-- changes of a payment later (it is given back, charged back, paid after all, or written down late) a trigger writes
-- down, code of before included; who pays within a quarter of an hour of coming never comes to it.
create table sales_closing (
    single boolean primary key default true check (single),
    closed_until timestamptz not null default '-infinity'
);
comment on table sales_closing is 'one row: up to when the sums contain the live payments that were begun';
insert into sales_closing (single) values (true);

create sequence sales_change_id_seq;
create table sales_change (
    merchant_id bigint not null,
    live boolean not null check (live),
    begins_at timestamptz not null,
    id bigint not null default nextval('sales_change_id_seq'),
    payment_id bigint not null,
    currency text not null,
    successful integer not null,
    volume numeric(20, 4) not null,
    failed integer not null,
    refunds integer not null,
    refunded numeric(20, 4) not null,
    primary key (merchant_id, live, begins_at, id)
);
comment on table sales_change is
    'by how much a payment moved that was begun in a quarter of an hour, as far as no sum contains it: it counts for a '
    'quarter that is closed, for one that is not the payment itself counts';

create table sales_quarter (
    merchant_id bigint not null,
    live boolean not null check (live),
    begins_at timestamptz not null,
    currency text not null,
    successful bigint not null,
    volume numeric(24, 4) not null,
    failed bigint not null,
    refunds bigint not null,
    refunded numeric(24, 4) not null,
    primary key (merchant_id, live, begins_at, currency)
);
comment on table sales_quarter is 'what became of the payments that were begun in a quarter of an hour';

create table sales_day (
    merchant_id bigint not null,
    live boolean not null check (live),
    day date not null,
    currency text not null,
    successful bigint not null,
    volume numeric(24, 4) not null,
    failed bigint not null,
    refunds bigint not null,
    refunded numeric(24, 4) not null,
    primary key (merchant_id, live, day, currency)
) with (fillfactor = 70);
comment on table sales_day is 'the same for a day, UTC';

create table sales_of_all (
    live boolean not null check (live),
    day date not null,
    currency text not null,
    successful bigint not null,
    volume numeric(24, 4) not null,
    failed bigint not null,
    refunds bigint not null,
    refunded numeric(24, 4) not null,
    primary key (live, day, currency)
) with (fillfactor = 70);
comment on table sales_of_all is 'the same for a day, UTC, of all merchants together';

create view payment_sold as
select merchant_id, live, id, created_at, quarter_of(created_at) as begins_at, currency,
       case when state in ('captured', 'partially_refunded', 'refunded', 'charged_back') then 1 else 0 end as successful,
       case when state in ('captured', 'partially_refunded', 'refunded', 'charged_back') then amount
            else 0 end as volume,
       case when state = 'declined' then 1 else 0 end as failed,
       case when state in ('partially_refunded', 'refunded') then 1 else 0 end as refunds,
       case when state in ('partially_refunded', 'refunded') then refunded else 0 end as refunded
  from payment;
comment on view payment_sold is 'what a payment counts for in sums of sales';

create function sales_move() returns trigger
    language plpgsql
    as $$
begin
    insert into sales_change (merchant_id, live, begins_at, payment_id, currency, successful, volume, failed, refunds,
                              refunded)
    select merchant_id, true, quarter_of(created_at), id, currency,
           sum(case when taken then sign else 0 end),
           sum(case when taken then sign * amount else 0 end),
           sum(case when state = 'declined' then sign else 0 end),
           sum(case when returned then sign else 0 end),
           sum(case when returned then sign * refunded else 0 end)
      from (select r.*, state in ('captured', 'partially_refunded', 'refunded', 'charged_back') as taken,
                   state in ('partially_refunded', 'refunded') as returned
              from (select -1 as sign, old.merchant_id as merchant_id, old.id as id, old.created_at as created_at,
                           old.currency as currency, old.state as state, old.amount as amount, old.refunded as refunded
                     where tg_op <> 'INSERT'
                     union all
                    select 1, new.merchant_id, new.id, new.created_at, new.currency, new.state, new.amount, new.refunded
                     where tg_op <> 'DELETE') r) c
     group by merchant_id, id, quarter_of(created_at), currency
    having (sum(case when taken then sign else 0 end), sum(case when taken then sign * amount else 0 end),
            sum(case when state = 'declined' then sign else 0 end), sum(case when returned then sign else 0 end),
            sum(case when returned then sign * refunded else 0 end)) <> (0, 0, 0, 0, 0);
    return null;
end
$$;
comment on function sales_move is 'writes down what changes of a payment whose quarter of an hour may be summed already';
-- A quarter is summed half an hour after its end at the soonest, and by then nobody writes any more who began within a
-- quarter of an hour after it: so what is not written down is in the sums.
create trigger sales_begin after insert on payment for each row
    when (new.live and new.created_at < clock_timestamp() - interval '15 minutes')
    execute function sales_move();
create trigger sales_move after update of state, amount, refunded, currency, created_at on payment for each row
    when (new.live and least(old.created_at, new.created_at) < clock_timestamp() - interval '15 minutes'
          and (old.state, old.amount, old.refunded, old.currency, old.created_at)
              is distinct from (new.state, new.amount, new.refunded, new.currency, new.created_at))
    execute function sales_move();
create trigger sales_end after delete on payment for each row
    when (old.live and old.created_at < clock_timestamp() - interval '15 minutes')
    execute function sales_move();
