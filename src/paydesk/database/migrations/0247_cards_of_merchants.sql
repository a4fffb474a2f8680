-- oldest code: 150
-- locks: card, merchant
-- As with customers: a card's merchant is there, and its row is not locked for each payment.
alter table card drop constraint card_merchant_id_fkey;
