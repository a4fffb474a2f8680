-- oldest code: 150
-- outside a transaction
-- Serves lists by state. Each payment is 'processing' for a moment and most are 'captured' then: those of these two are
-- found otherwise, and most payments are never in this index, nor does their being paid touch a column of it.
create index concurrently if not exists payment_of_rare_states on payment (merchant_id, live, rare_state, created_at, id)
    where rare_state is not null;
