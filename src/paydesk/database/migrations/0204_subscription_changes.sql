-- oldest code: 150
-- What is to become of a subscription later: it ends with its period, or is paused and resumes. While a change is open
-- the subscription is neither charged nor runs out: it has no date of its own, and the change has. Code of before knows
-- nothing of changes. It charges by date_next and expires by date_end alone, so it leaves such a subscription alone; what
-- it writes meanwhile, the trigger sets right.
create sequence subscription_change_id_seq;
create table subscription_change (
    merchant_id bigint not null,
    live boolean not null,
    id bigint not null default nextval('subscription_change_id_seq'),
    subscription_id bigint not null,
    type text not null check (type in ('cancel', 'resume')),
    state text not null default 'open' check (state in ('open', 'done', 'undone', 'replaced', 'overtaken')),
    due_at timestamptz,
    asked_by text not null,
    since timestamptz not null,
    created_at timestamptz not null,
    finished_at timestamptz,
    primary key (merchant_id, id),
    -- Test data may be deleted as a whole when a test clock is reset; a change goes with what it belongs to.
    foreign key (merchant_id, subscription_id) references subscription (merchant_id, id) on delete cascade,
    check (due_at is not null or type = 'resume'),
    check ((state = 'open') = (finished_at is null))
) with (fillfactor = 80);
comment on table subscription_change is
    'what is to become of a subscription later, by whose wish; all times are those of its side';
comment on column subscription_change.type is
    '''cancel'': it ends with the period that is paid; ''resume'': it is paused, and goes on then';
comment on column subscription_change.state is
    '''overtaken'': the subscription ended another way before';
comment on column subscription_change.due_at is 'when it is carried out; null: when somebody asks for it';
comment on column subscription_change.since is
    'from when it holds: a pause that gets another end has begun with the first one';
-- A subscription has one open change at a time.
create unique index subscription_change_open on subscription_change (merchant_id, live, subscription_id)
    where state = 'open';
-- Serves what a subscription's pages show of changes that were.
create index subscription_change_by_subscription on subscription_change (merchant_id, live, subscription_id, id);
-- Serves the claim of what is due.
create index subscription_change_due on subscription_change (due_at) where state = 'open' and due_at is not null;
-- The same for sides whose test clock runs ahead.
create index subscription_change_due_by_side on subscription_change (merchant_id, live, due_at)
    where state = 'open' and due_at is not null;

alter table subscription add column change_id bigint;
comment on column subscription.change_id is 'the open change, which has the next date in its stead';

create function subscription_bends() returns trigger
    language plpgsql
    as $$
begin
    if new.state not in ('Trial', 'Active') then
        update subscription_change
           set state = 'overtaken', finished_at = coalesce(new.date_cancelled, new.date_expired, created_at)
         where merchant_id = new.merchant_id and id = new.change_id and state = 'open';
        new.change_id := null;
    else
        new.date_end := null;
    end if;
    new.date_next := null;
    return new;
end
$$;
comment on function subscription_bends is
    'a subscription with an open change has no date of its own; one that ends has no change';
create trigger subscription_bends before update on subscription for each row
    when (new.change_id is not null
          and (new.date_next is not null or new.date_end is not null or new.state not in ('Trial', 'Active')))
    execute function subscription_bends();
