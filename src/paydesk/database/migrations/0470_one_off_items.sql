-- oldest code: 150
-- locks: subscription, subscription_difference
-- What a subscription's next charge has besides its price, once: a row of its own, and its amount in the balance, which code
-- of before charges as any other. Whoever charges the balance before that, for a change of plan at once, has charged the
-- items in it.
create sequence subscription_item_id_seq;
create table subscription_item (
    merchant_id bigint not null,
    live boolean not null,
    id bigint not null default nextval('subscription_item_id_seq'),
    subscription_id bigint not null,
    request_key text,
    period_number integer not null,
    amount numeric(20, 4) not null check (amount > 0),
    description text not null,
    asked_by text not null,
    created_at timestamptz not null,
    taken_back_at timestamptz,
    charged_attempt_id bigint,
    primary key (merchant_id, id),
    -- Test data may be deleted as a whole when a test clock is reset; this goes with what it belongs to.
    foreign key (merchant_id, subscription_id) references subscription (merchant_id, id) on delete cascade,
    check (taken_back_at is null or charged_attempt_id is null)
);
comment on table subscription_item is 'what the next charge of a subscription has besides its price, once';
comment on column subscription_item.request_key is 'the caller''s Idempotency-Key: one key is one item';
comment on column subscription_item.period_number is 'with whose charge it comes, unless it was charged before';
comment on column subscription_item.amount is 'what it has put into the balance, while it is not taken back';
comment on column subscription_item.charged_attempt_id is
    'the charge for a change of plan at once that took the balance with it, before the period''s';
create unique index subscription_item_by_request on subscription_item (merchant_id, live, request_key)
    where request_key is not null;
create index subscription_item_by_subscription on subscription_item (merchant_id, subscription_id, id);

create function items_are_charged() returns trigger
    language plpgsql
    as $$
begin
    update subscription_item i
       set charged_attempt_id = new.attempt_id
     where i.merchant_id = new.merchant_id and i.live = new.live and i.subscription_id = new.subscription_id
       and i.period_number > new.period_number and i.taken_back_at is null and i.charged_attempt_id is null;
    return null;
end
$$;
comment on function items_are_charged is
    'what is charged for a change of plan at once has the balance in it, and so the items that wait';
create trigger items_are_charged after update on subscription_difference for each row
    when (old.state = 'open' and new.state = 'paid')
    execute function items_are_charged();
