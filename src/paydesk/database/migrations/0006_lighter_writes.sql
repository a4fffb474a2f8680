-- What every payment writes gets lighter: no trigger per row for what its statement makes sure of, fewer index entries.

-- The statements that write these rows have their parents in hand: they write the payment or lock it, and a payment's
-- customer and card are written with it or come from a locked subscription, whose keys stay. A checkout's merchant
-- follows from its key. These constraints took a quarter of a renewal's time, and locked the merchant's row each time.
-- `paydesk check` names rows whose parent is missing (its rule parents_exist).
alter table checkout drop constraint checkout_merchant_id_fkey;
alter table payment
    drop constraint payment_merchant_id_fkey,
    drop constraint payment_merchant_id_customer_id_fkey,
    drop constraint payment_merchant_id_card_id_fkey;
alter table payment_attempt
    drop constraint payment_attempt_merchant_id_fkey,
    drop constraint payment_attempt_merchant_id_payment_id_fkey;
alter table ledger_entry
    drop constraint ledger_entry_merchant_id_fkey,
    drop constraint ledger_entry_merchant_id_payment_id_fkey;
alter table pingback
    drop constraint pingback_merchant_id_fkey,
    drop constraint pingback_merchant_id_payment_id_fkey;

-- Renewals have no checkout.
drop index payment_attempt_by_checkout;
create index payment_attempt_by_checkout on payment_attempt (merchant_id, live, checkout_id)
    where checkout_id is not null;

-- Nobody asks for a single posting: a payment's entries are found by the payment.
drop index ledger_entry_by_posting;

-- Most subscriptions are active, and each charge writes their row twice: the index by time serves those.
drop index subscription_by_state;
create index subscription_by_state on subscription (merchant_id, live, state, created_at, id) where state <> 'Active';
