-- oldest code: 150
-- What became of the charge of a difference is told by its payment, which has neither a checkout nor a period.
create function difference_is_decided() returns trigger
    language plpgsql
    as $$
begin
    if new.paid_at is not null then
        perform difference_is_paid(new.merchant_id, new.live, new.attempt_id, new.paid_at);
        return null;
    end if;
    with closed as (
        update subscription_difference
           set state = 'declined', finished_at = at
         where merchant_id = new.merchant_id and live = new.live and attempt_id = new.attempt_id and state = 'open'
     returning merchant_id, live, subscription_id, attempt_id
    )
    update subscription s
       set charging_attempt_id = null
      from closed c
     where s.merchant_id = c.merchant_id and s.live = c.live and s.id = c.subscription_id
       and s.charging_attempt_id = c.attempt_id;
    return null;
end
$$;
comment on function difference_is_decided is
    'a difference was paid: the plan changes; it was not: the subscription goes on as it was';
create trigger difference_is_decided after update of state, paid_at on payment for each row
    when (not new.renewal and new.checkout_id is null
          and (old.paid_at is null and new.paid_at is not null or new.state = 'declined' and old.state <> 'declined'))
    execute function difference_is_decided();
