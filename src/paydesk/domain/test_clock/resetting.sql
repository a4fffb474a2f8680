-- name: pause_subscriptions(merchant_id)!
-- Nothing more falls due while the data goes; orders made from now on get other keys at the acquirer than those deleted.
with raised as (
    update merchant set test_generation = test_generation + 1 where id = :merchant_id
), dropped as (
    delete from subscription_change where merchant_id = :merchant_id and live = false
)
update subscription
   set date_next = null, change_id = null
 where merchant_id = :merchant_id and live = false and (date_next is not null or change_id is not null);

-- name: delete_pingback_attempts(merchant_id, most)!
delete from pingback_attempt
 where merchant_id = :merchant_id and live = false
   and (at, id) in (select at, id from pingback_attempt where merchant_id = :merchant_id and live = false limit :most);

-- name: delete_rejected_forms(merchant_id, most)!
delete from rejected_form
 where merchant_id = :merchant_id and live = false
   and (at, id) in (select at, id from rejected_form where merchant_id = :merchant_id and live = false limit :most);

-- name: delete_ignored_fields(merchant_id, most)!
delete from ignored_field
 where merchant_id = :merchant_id and live = false
   and (sent_with, name) in (
       select sent_with, name from ignored_field where merchant_id = :merchant_id and live = false limit :most);

-- name: delete_card_tries(merchant_id, most)!
delete from card_try
 where merchant_id = :merchant_id and live = false
   and subject in (select subject from card_try where merchant_id = :merchant_id and live = false limit :most);

-- name: delete_card_guard_minutes(merchant_id, most)!
-- What the guard did because of them ends with them; limits of the merchant's own stay.
with eased as (
    update card_guard
       set authenticate_since = null, authenticate_until = null, paused_until = null
     where merchant_id = :merchant_id and live = false
)
delete from card_guard_minute
 where merchant_id = :merchant_id and live = false
   and minute in (select minute from card_guard_minute where merchant_id = :merchant_id and live = false limit :most);

-- name: delete_pingbacks(merchant_id, most)!
delete from pingback
 where merchant_id = :merchant_id and live = false
   and id in (select id from pingback where merchant_id = :merchant_id and live = false limit :most);

-- name: delete_ledger_postings(merchant_id, most)!
delete from ledger_posting
 where merchant_id = :merchant_id and live = false
   and id in (select id from ledger_posting where merchant_id = :merchant_id and live = false limit :most);

-- name: delete_ledger_entries_of_before(merchant_id, most)!
delete from ledger_entry_before
 where merchant_id = :merchant_id and live = false
   and id in (select id from ledger_entry_before where merchant_id = :merchant_id and live = false limit :most);

-- name: delete_payouts(merchant_id, most)!
delete from payout
 where merchant_id = :merchant_id and live = false
   and id in (select id from payout where merchant_id = :merchant_id and live = false limit :most);

-- name: delete_deliveries(merchant_id, most)!
delete from delivery
 where merchant_id = :merchant_id and live = false
   and id in (select id from delivery where merchant_id = :merchant_id and live = false limit :most);

-- name: delete_evidence_files(merchant_id, most)!
delete from evidence_file
 where merchant_id = :merchant_id and live = false
   and id in (select id from evidence_file where merchant_id = :merchant_id and live = false limit :most);

-- name: delete_chargebacks(merchant_id, most)!
delete from chargeback
 where merchant_id = :merchant_id and live = false
   and id in (select id from chargeback where merchant_id = :merchant_id and live = false limit :most);

-- name: delete_movements(merchant_id, most)!
delete from movement
 where merchant_id = :merchant_id and live = false
   and id in (select id from movement where merchant_id = :merchant_id and live = false limit :most);

-- name: delete_api_calls(merchant_id, most)!
delete from api_call
 where merchant_id = :merchant_id and live = false
   and request_key in (select request_key from api_call where merchant_id = :merchant_id and live = false limit :most);

-- name: delete_shopper_sessions(merchant_id, most)!
delete from shopper_session
 where merchant_id = :merchant_id and live = false
   and id in (select id from shopper_session where merchant_id = :merchant_id and live = false limit :most);

-- name: delete_shopper_codes(merchant_id, most)!
delete from shopper_code
 where merchant_id = :merchant_id and live = false
   and address in (select address from shopper_code where merchant_id = :merchant_id and live = false limit :most);

-- name: delete_instrument_charges(merchant_id, most)!
delete from instrument_charge
 where merchant_id = :merchant_id and live = false
   and attempt_id in (select attempt_id from instrument_charge where merchant_id = :merchant_id and live = false limit :most);

-- name: delete_saved_instruments(merchant_id, most)!
delete from saved_instrument
 where merchant_id = :merchant_id and live = false
   and id in (select id from saved_instrument where merchant_id = :merchant_id and live = false limit :most);

-- name: delete_shoppers(merchant_id, most)!
delete from shopper
 where merchant_id = :merchant_id and live = false
   and id in (select id from shopper where merchant_id = :merchant_id and live = false limit :most);

-- name: delete_payment_attempts(merchant_id, most)!
-- The simulated bank remembers what it did for them: `paydesk check` must know their keys.
with gone as (
    delete from payment_attempt
     where merchant_id = :merchant_id and live = false
       and id in (select id from payment_attempt where merchant_id = :merchant_id and live = false limit :most)
 returning merchant_id, id, acquirer, idempotency_key
), pages_gone as (
    delete from hosted_page h
     using gone
     where h.merchant_id = gone.merchant_id and h.live = false and h.attempt_id = gone.id
)
insert into forgotten_attempt (merchant_id, acquirer, idempotency_key)
select merchant_id, acquirer, idempotency_key from gone
    on conflict do nothing;

-- name: delete_payments(merchant_id, most)!
delete from payment
 where merchant_id = :merchant_id and live = false
   and id in (select id from payment where merchant_id = :merchant_id and live = false limit :most);

-- name: delete_package_moves(merchant_id, most)!
delete from package_move
 where merchant_id = :merchant_id and live = false
   and id in (select id from package_move where merchant_id = :merchant_id and live = false limit :most);

-- name: delete_reserve_changes(merchant_id, most)!
delete from reserve_change
 where merchant_id = :merchant_id and live = false
   and (payment_id, id) in (
       select payment_id, id from reserve_change where merchant_id = :merchant_id and live = false limit :most);

-- name: delete_reserve_dues(merchant_id, most)!
delete from reserve_due
 where merchant_id = :merchant_id and live = false
   and (currency, due_at) in (
       select currency, due_at from reserve_due where merchant_id = :merchant_id and live = false limit :most);

-- name: delete_subscriptions(merchant_id, most)!
-- With the changes of their cards.
delete from subscription
 where merchant_id = :merchant_id and live = false
   and id in (select id from subscription where merchant_id = :merchant_id and live = false limit :most);

-- name: delete_mrr_days(merchant_id, most)!
-- The movements that they are sums of went with their subscriptions.
delete from mrr_day
 where merchant_id = :merchant_id and live = false
   and (currency, day, kind, began) in (
       select currency, day, kind, began from mrr_day where merchant_id = :merchant_id and live = false limit :most);

-- name: delete_payment_link_sales(merchant_id, most)!
delete from payment_link_sale
 where merchant_id = :merchant_id and live = false
   and checkout_id in (
       select checkout_id from payment_link_sale where merchant_id = :merchant_id and live = false limit :most);

-- name: delete_payment_links(merchant_id, most)!
delete from payment_link
 where merchant_id = :merchant_id and live = false
   and id in (select id from payment_link where merchant_id = :merchant_id and live = false limit :most);

-- name: delete_coupon_uses(merchant_id, most)!
delete from coupon_use
 where merchant_id = :merchant_id and live = false
   and checkout_id in (
       select checkout_id from coupon_use where merchant_id = :merchant_id and live = false limit :most);

-- name: delete_coupons(merchant_id, most)!
delete from coupon
 where merchant_id = :merchant_id and live = false
   and id in (select id from coupon where merchant_id = :merchant_id and live = false limit :most);

-- name: delete_picture_sources(merchant_id, most)!
delete from picture_source
 where merchant_id = :merchant_id and live = false
   and url_digest in (select url_digest from picture_source where merchant_id = :merchant_id and live = false limit :most);

-- name: delete_item_pictures(merchant_id, most)!
delete from item_picture
 where merchant_id = :merchant_id and live = false
   and digest in (select digest from item_picture where merchant_id = :merchant_id and live = false limit :most);

-- name: delete_checkouts(merchant_id, most)!
delete from checkout
 where merchant_id = :merchant_id and live = false
   and id in (select id from checkout where merchant_id = :merchant_id and live = false limit :most);

-- name: delete_customers(merchant_id, most)!
delete from customer
 where merchant_id = :merchant_id and live = false
   and id in (select id from customer where merchant_id = :merchant_id and live = false limit :most);

-- name: delete_cards(merchant_id, most)!
delete from card
 where merchant_id = :merchant_id and live = false
   and id in (select id from card where merchant_id = :merchant_id and live = false limit :most);

-- name: delete_package_versions(merchant_id, most)!
delete from package_version
 where merchant_id = :merchant_id and live = false
   and id in (select id from package_version where merchant_id = :merchant_id and live = false limit :most);

-- name: delete_subscription_packages(merchant_id, most)!
delete from subscription_package
 where merchant_id = :merchant_id and live = false
   and id in (select id from subscription_package where merchant_id = :merchant_id and live = false limit :most);
