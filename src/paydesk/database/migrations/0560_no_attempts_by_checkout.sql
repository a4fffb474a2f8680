-- once no older code runs
-- outside a transaction
-- Code of before counts the attempts of a checkout by it; they are found by its order's payment.
drop index concurrently if exists payment_attempt_by_checkout;
