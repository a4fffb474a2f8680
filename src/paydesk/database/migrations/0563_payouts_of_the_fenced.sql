-- oldest code: 150
-- Who is fenced comes into no file of payouts: what was read before the fence and is written after it is left out of the
-- file, which goes on for everybody else. Failed refunds that wait at an account that serves one merchant alone go with it.
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
    elsif tg_table_name = 'payout_file_line' then
        -- What is in a file already is recorded or dropped with it, whoever is fenced meanwhile.
        begins := tg_op = 'INSERT';
        whose := case when begins then new.merchant_id end;
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
    -- These write for many merchants in one statement, which is for all others.
    if current_setting('application_name') = 'paydesk work' or tg_table_name = 'payout_file_line' then
        return null;
    end if;
    raise exception using errcode = 'PD001', message = fence_in_words(fence);
end $$;
