-- oldest code: 150
-- A subscription without a card is of no acquirer's account (''), and ends with its trial: that is its open change. The
-- card that its customer gives takes the change's place, whoever writes that down: it is charged when it would have ended.
create function card_is_given() returns trigger
    language plpgsql
    as $$
declare
    ends_at timestamptz;
begin
    update subscription_change c
       set state = 'undone', finished_at = clock_timestamp() + side_clock(new.live, m.test_clock)
      from merchant m
     where m.id = new.merchant_id and c.merchant_id = new.merchant_id and c.id = new.change_id and c.state = 'open'
       and c.asked_by = 'no_card'
    returning c.due_at into ends_at;
    if found then
        new.change_id := null;
        new.date_next := ends_at;
    end if;
    return new;
end
$$;
comment on function card_is_given is 'a trial goes on, and is charged at its end, from when its customer has given a card';
create trigger card_is_given before update of acquirer on subscription for each row
    when (old.acquirer = '' and new.acquirer <> '' and new.state in ('Trial', 'Active'))
    execute function card_is_given();
