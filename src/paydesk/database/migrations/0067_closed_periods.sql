-- A statement of a period that is over never changes, and a choice about fees holds for refunds from then on.

-- When money is posted, not when its bank was asked, which may have been in another period. A test side whose clock runs
-- ahead lives by that clock.
create function posted_at(of_merchant bigint, on_live boolean, wanted timestamptz) returns timestamptz
language sql stable as $$
    select case when on_live or (select test_clock from merchant where id = of_merchant) = interval '0'
                then greatest(wanted, statement_timestamp())
                else wanted
           end
$$;

alter table movement add column fees_returned boolean;
comment on column movement.fees_returned is
    'whether the account had the fees'' share given back when a refund was asked for; null: as it is when it is recorded';

comment on column ledger_horizon.seen_id is
    'the newest id that was given to an entry; closed once all have ended that had drawn ids by then';
comment on column ledger_horizon.seen_before is 'not used any more';
