-- oldest code: 150
-- outside a transaction
-- In place of subscription_due, whose condition named the charge in flight: this one is not touched when a charge begins.
create index concurrently if not exists subscription_to_charge
    on subscription (merchant_id, live, date_next, charge_takes_long) where date_next is not null;
