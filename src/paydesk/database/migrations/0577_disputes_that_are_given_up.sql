-- oldest code: 150
-- locks: dispute_waiting, failed_refund_waiting
-- What no cell knows is asked for seldom, and given up in the end; and what an operator was told of an account that nobody
-- reads is asked for again, so that the alarm is settled once another cell has booked it.
alter table dispute_waiting alter column next_at drop not null;
comment on column dispute_waiting.next_at is 'when it is tried again; null: it is given up until it is told again';
create function same_dispute(one jsonb, other jsonb) returns boolean
    language sql immutable
    as $$
    select one - '{at,respond_by,answered,reason,of_merchant}'::text[]
           is not distinct from other - '{at,respond_by,answered,reason,of_merchant}'::text[]
    $$;
comment on function same_dispute is 'whether a telling says of a dispute what another one said, as far as books are concerned';
drop index dispute_waiting_untried;
create index dispute_waiting_untried on dispute_waiting (next_at) where stands is distinct from 'over';
drop index failed_refund_waiting_untried;
create index failed_refund_waiting_untried on failed_refund_waiting (next_at) where next_at is not null;
-- Serves the forgetting of what is given up; there is little of it.
create index dispute_waiting_given_up on dispute_waiting (last_at) where stands = 'given_up';
