-- oldest code: 150
-- outside a transaction
-- An index of a big table.
create index concurrently if not exists ledger_entry_by_amount on ledger_entry_before (merchant_id, live, currency, amount);
