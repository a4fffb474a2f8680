-- oldest code: 150
-- What a payment is found by does not change when it is paid, so that its row is written anew in place, and no index with
-- it. Its state stands in `rare_state` where it is one of few payments, and when its money moves on is looked at from a
-- time that is known at its begin. Whoever knows nothing of it, as code of before, has it put right after the statement.
-- (What a trigger asks is read and made ready anew by each statement, so it is said in few words, and by no function.)
-- For hundreds that are paid by one statement each page keeps room for a second version of all of its rows.
alter table payment add column rare_state text, add column funds_look_at timestamptz, set (fillfactor = 50);
comment on column payment.rare_state is
    'the state, unless it is one that most payments have: only what differs is found by an index of few';
comment on column payment.funds_look_at is
    'from when on is looked whether a part of its money becomes available: never after funds_due_at';

create function rare_state(state text) returns text
    language sql immutable parallel safe
    return case when state not in ('captured', 'processing') then state end;
comment on function rare_state is 'a payment''s state, or null for one that most payments have';

create function money_part(settled_at timestamptz) returns smallint
    language sql immutable parallel safe
    return case when settled_at is null then 0::smallint else 1::smallint end;
comment on function money_part is 'which part of a payment''s money becomes available next: 0 the net, 1 the reserve';

create function payment_is_found() returns trigger
    language plpgsql
    as $$
begin
    update payment
       set rare_state = rare_state(new.state), funds_look_at = new.funds_due_at
     where merchant_id = new.merchant_id and id = new.id;
    return null;
end
$$;
comment on function payment_is_found is 'puts right by what a payment is found, for whoever wrote its state or its times alone';
create trigger payment_is_found after insert on payment for each row
    when (new.rare_state is distinct from case when new.state not in ('captured', 'processing') then new.state end
          or new.funds_due_at is not null and coalesce(new.funds_look_at > new.funds_due_at, true))
    execute function payment_is_found();
create trigger payment_is_found_again after update of state, funds_due_at on payment for each row
    when (new.rare_state is distinct from case when new.state not in ('captured', 'processing') then new.state end
          or new.funds_due_at is not null and coalesce(new.funds_look_at > new.funds_due_at, true)
          or old.funds_due_at <> new.funds_due_at and new.funds_look_at <> new.funds_due_at
          or old.funds_due_at is not null and new.funds_due_at is null and new.funds_look_at is not null)
    execute function payment_is_found();

-- The same as before, but after the change: a trigger before it has each update of any payment lock its row first, which is
-- a record in the log.
create or replace function people_name_another() returns trigger
    language plpgsql
    as $$
begin
    update payment set people_of = null where merchant_id = new.merchant_id and id = new.id;
    return null;
end
$$;
drop trigger people_name_another on payment;
create trigger people_name_another after update of id on payment for each row
    when (old.id <> new.id and new.people_of is not null)
    execute function people_name_another();
