-- oldest code: 150
-- locks: acquirer_account, acquirer_lost
-- An account that serves one merchant alone goes to another cell with that merchant: whoever is fenced, so are its accounts,
-- their rules, and what was read of them.
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
                            'dispute_waiting', 'failed_refund_reading', 'operator_entry', 'proceeds_finding',
                            'purchase_given_back', 'reconciliation') then
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

create function merchant_of_account(named text) returns bigint
    language sql stable
    return (select for_merchant_id from acquirer_account where name = named);
comment on function merchant_of_account is 'the only merchant that an account serves; null: it serves all, or is no added one';

alter table acquirer_account add column asked_by text[] not null default '{}';
comment on column acquirer_account.asked_by is
    'tags of the deployments, cells of this one, that asked it before: what they made there is ours';

alter table acquirer_lost add column moved_to smallint;
comment on column acquirer_lost.moved_to is 'the cell that asks it now, where its merchant is; null: none that is known';
alter table acquirer_lost add column key_print bytea;
comment on column acquirer_lost.key_print is 'of one that another cell asks: by what it is known again if its acquirer calls it nothing';

-- A process has an account open for seconds after it has gone, so that its name is asked for besides its merchant.
create function accounts_left_alone(while_here boolean) returns text[]
    language sql stable
    return (select coalesce(array_agg(name), '{}')
              from (select a.name
                      from merchant_fence f
                      join acquirer_account a on a.for_merchant_id = f.merchant_id
                     where while_here or f.arrives or f.moved_at is not null
                     union all
                    select l.account
                      from acquirer_lost l
                     where l.gone_at is not null and not exists (select from acquirer_account a where a.name = l.account)
                   ) one);
comment on function accounts_left_alone is
    'accounts that this cell does not read: of who goes, unless it is asked which are not here, of who comes or has gone';
