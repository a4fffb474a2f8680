-- oldest code: 150
-- outside a transaction
drop index concurrently if exists payment_of_few_states;
