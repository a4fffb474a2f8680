-- oldest code: 150
-- Where cells share an account, each reads all that failed of its refunds, and knows only those of its own merchants. What
-- is not known here waits: its merchant may come from another cell before anybody there has booked it.
create table failed_refund_waiting (
    acquirer text not null,
    acquirer_reference text not null,
    told jsonb not null,
    first_at timestamptz not null,
    last_at timestamptz not null,
    next_at timestamptz,
    tries integer not null default 0,
    alarmed_at timestamptz,
    primary key (acquirer, acquirer_reference)
);
comment on table failed_refund_waiting is 'refunds that failed, as they were last told, of which no refund is known here';
comment on column failed_refund_waiting.last_at is 'when its acquirer told it last: it may tell it again for weeks';
comment on column failed_refund_waiting.next_at is
    'when it is tried again; null: another cell has booked it, which is remembered as long as it may be told again';
comment on column failed_refund_waiting.alarmed_at is 'since when an operator is told that no cell knows it; null: not so';
-- Serves the claim of those to be tried again.
create index failed_refund_waiting_due on failed_refund_waiting (acquirer, next_at);
-- Serves the forgetting of those that were not told for long.
create index failed_refund_waiting_told on failed_refund_waiting (acquirer, last_at);

-- The same as before, with this table: what waits at an account that serves one merchant alone goes with that one.
create or replace function refuse_while_fenced() returns trigger
    language plpgsql as $$
declare
    whose bigint;
    fence merchant_fence;
    begins boolean;
begin
    -- A step of the schema changes how it is written down, wherever it stands, and not what it is.
    if current_setting('application_name') = 'paydesk migrate' then
        return case when tg_op = 'DELETE' then old else new end;
    end if;
    begins := tg_op = 'INSERT' and tg_table_name in ('payment_attempt', 'movement', 'card_change');
    if tg_table_name = 'merchant' then
        whose := case when tg_op = 'DELETE' then old.id else new.id end;
    elsif tg_table_name in ('acquirer_account', 'acquirer_rule') then
        whose := case when tg_op = 'DELETE' then old.for_merchant_id else new.for_merchant_id end;
        begins := true;
    elsif tg_table_name = 'acquirer_own_id' then
        whose := merchant_of_account(case when tg_op = 'DELETE' then old.account else new.account end);
    elsif tg_table_name in ('acquirer_fee', 'balance_line', 'balance_reading', 'bank_payout', 'dispute_reading',
                            'dispute_waiting', 'failed_refund_reading', 'failed_refund_waiting', 'operator_entry',
                            'proceeds_finding', 'purchase_given_back', 'reconciliation') then
        whose := merchant_of_account(case when tg_op = 'DELETE' then old.acquirer else new.acquirer end);
        if tg_op <> 'DELETE'
           and tg_table_name in ('balance_reading', 'dispute_reading', 'failed_refund_reading', 'reconciliation') then
            -- A lease that nobody has yet begins a reading; another one goes on with it.
            begins := coalesce(new.leased_until > clock_timestamp(), false);
            if tg_op = 'UPDATE' then
                begins := begins and coalesce(old.leased_until <= clock_timestamp(), true);
            end if;
        end if;
    else
        whose := case when tg_op = 'DELETE' then old.merchant_id else new.merchant_id end;
    end if;
    select * into fence from merchant_fence where merchant_id = whose;
    if found and fence.closed_at is null then
        select * into fence from merchant_fence where merchant_id = whose for share;
    end if;
    if fence.merchant_id is null or fence.closed_at is null and not (begins or tg_table_name = 'form_count') then
        return case when tg_op = 'DELETE' then old else new end;
    end if;
    if current_setting('application_name') = 'paydesk work' then
        return null;
    end if;
    raise exception using
        errcode = 'PD001',
        message = case when fence.moved_at is not null
                       then format('this account has moved to cell %s: nothing was done here; ask there', fence.other_cell)
                       else 'this account is being moved to another server: nothing was done; try again in a minute' end;
end $$;
