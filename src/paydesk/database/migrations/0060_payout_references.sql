-- Finds the payout that a reference was recorded with before: a transfer that is recorded twice counts once. Older payouts
-- may share one, so it is not unique; recording holds the merchant's row, so that no two new ones do unasked.
create index payout_by_reference on payout (merchant_id, live, reference);
