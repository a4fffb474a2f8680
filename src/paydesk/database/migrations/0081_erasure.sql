-- Customers can be erased, so the audit log, which can't be changed, holds nothing of them but ids.

-- Entries are append-only; this once the log is rid of customers' addresses, searches and parcels.
create or replace function refuse_audit_change() returns trigger language plpgsql as $$ begin return new; end $$;
update audit_entry set details = details - 'email' where action = 'subscription_cancelled' and details ? 'email';
update audit_entry set details = details - 'tracking_id' where action = 'delivery_confirmed' and details ? 'tracking_id';
update audit_entry
   set details = jsonb_set(details, '{q}', '"…"')
 where action = 'exported' and details ->> 'q' <> '';
-- Rows leave the default partition for their month's, and months go as a whole; nothing else is ever removed.
create or replace function refuse_audit_change() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' and tg_table_name = 'audit_entry_other' then
        return old;
    end if;
    raise exception 'audit_entry is append-only';
end $$;
comment on table audit_entry is 'append-only: who did what, when, from where; customers stand in it as ids, never with a name or an address';
