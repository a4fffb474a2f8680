-- oldest code: 150
-- outside a transaction
-- Serves lists by state. Each payment is 'processing' for a moment and most are 'captured' then: those of these two are
-- found otherwise, and most payments are never in this index.
create index concurrently if not exists payment_of_few_states on payment (merchant_id, live, state, created_at, id)
    where state not in ('captured', 'processing');
