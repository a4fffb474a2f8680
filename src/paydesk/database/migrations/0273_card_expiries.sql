-- oldest code: 150
-- Until when the card of a subscription is good, so that its customer hears of it in time. Whoever begins a subscription or
-- gives it another card writes it down, code of before included.
create table card_expiry (
    merchant_id bigint not null,
    live boolean not null,
    subscription_id bigint not null,
    card_id bigint not null,
    expires_at timestamptz not null,
    told_days smallint,
    primary key (merchant_id, subscription_id),
    -- Test data may be deleted as a whole when a test clock is reset; this goes with what it belongs to.
    foreign key (merchant_id, subscription_id) references subscription (merchant_id, id) on delete cascade
);
comment on table card_expiry is 'subscriptions by cards whose expiry is still to be told; it goes with the last notice';
comment on column card_expiry.expires_at is 'the end of the card''s last month, where the merchant is';
comment on column card_expiry.told_days is 'how many days before it the customer was told last; null: not yet';
-- Serves the claim of notices: the next that expire of each side.
create index card_expiry_by_side on card_expiry (merchant_id, live, expires_at);

create function card_expires() returns trigger
    language plpgsql
    as $$
begin
    delete from card_expiry where merchant_id = new.merchant_id and subscription_id = new.id;
    insert into card_expiry (merchant_id, live, subscription_id, card_id, expires_at)
    select new.merchant_id, new.live, new.id, c.id,
           (make_date(c.exp_year, c.exp_month, 1) + interval '1 month') at time zone new.time_zone
      from card c
     where c.merchant_id = new.merchant_id and c.id = new.card_id and c.exp_month between 1 and 12 and c.exp_year > 0
       and c.wallet = '';
    return null;
end
$$;
comment on function card_expires is 'a bank account never expires, and a wallet renews what it holds';
create trigger card_expires after insert on subscription for each row
    execute function card_expires();
create trigger card_expires_otherwise after update of card_id on subscription for each row
    when (new.card_id is distinct from old.card_id)
    execute function card_expires();
