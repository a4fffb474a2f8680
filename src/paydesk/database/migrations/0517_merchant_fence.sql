-- oldest code: 150
-- A merchant that goes to another cell is fenced: in the cell that it leaves until it is the other's, and from then on for
-- good; in the cell that it comes to until it is that one's. Claims leave out whoever stands here, by an array that is read
-- once (coalesce hides the comparison from the planner, which would take it for one that few rows pass).
create table merchant_fence (
    merchant_id bigint primary key,
    arrives boolean not null,
    other_cell smallint not null,
    since timestamptz not null,
    closed_at timestamptz,
    moved_at timestamptz,
    check (closed_at is not null or not arrives and moved_at is null)
);
comment on table merchant_fence is 'merchants that are on their way to or from another cell; usually empty';
comment on column merchant_fence.arrives is 'whether it comes from the other cell, or goes there';
comment on column merchant_fence.closed_at is
    'since when nothing of it is written; before that what is under way ends, and only nothing new begins. UTC';
comment on column merchant_fence.moved_at is 'since when it is the other cell''s for good: what is here is what was. UTC';

-- Off everywhere but where somebody is fenced: domain/cells/fencing.py puts a trigger on each table of merchants then.
-- Whoever writes before the fence is closed holds it open until the write is committed. Workers, who write for many
-- merchants in one statement, do nothing to the rows of those who are fenced; everybody else is refused.
create function refuse_while_fenced() returns trigger
    language plpgsql as $$
declare
    whose bigint;
    fence merchant_fence;
begin
    if tg_table_name = 'merchant' then
        whose := case when tg_op = 'DELETE' then old.id else new.id end;
    else
        whose := case when tg_op = 'DELETE' then old.merchant_id else new.merchant_id end;
    end if;
    select * into fence from merchant_fence where merchant_id = whose;
    if found and fence.closed_at is null then
        select * into fence from merchant_fence where merchant_id = whose for share;
    end if;
    if fence.merchant_id is null or fence.closed_at is null and not (
           tg_table_name = 'form_count'
           or tg_op = 'INSERT' and tg_table_name in ('payment_attempt', 'movement', 'card_change')) then
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
comment on function refuse_while_fenced is 'what a trigger does on each table of merchants while one is fenced';
