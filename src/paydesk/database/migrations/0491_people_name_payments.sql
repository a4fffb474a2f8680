-- oldest code: 150
-- locks: card, customer, payment
-- Who pays at a checkout writes a customer and a card of their own for it. These name their payment, so that it is found
-- by them without two index entries, written twice. What code of before writes, or another attempt overwrites, has
-- another attempt than `people_of` says, and is found by index as before.
alter table customer add column payment_id bigint;
comment on column customer.payment_id is 'the payment that it was written for, by the attempt in its people_of';
alter table card add column payment_id bigint;
comment on column card.payment_id is 'the payment that it was written for, by the attempt in its people_of';
alter table payment add column people_of bigint;
comment on column payment.people_of is
    'the attempt whose customer and card name this payment; if it is not its attempt, an index has it by these';
