-- oldest code: 150
-- outside a transaction
-- Serves the move of a merchant: the entries of its own account, also of one that has few beside others that have many.
create index concurrently if not exists operator_entry_of_account on operator_entry (acquirer);
