-- oldest code: 150
-- outside a transaction
-- Serves whoever reads warnings of fraud, each of which is an alarm once, and the page of the payment that one is about.
create index concurrently if not exists alarm_of_fraud on alarm (merchant_id, live, subject) where kind = 'fraud_warned';
