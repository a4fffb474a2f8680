-- oldest code: 150
-- outside a transaction
-- In place of subscription_to_announce, for the same reason.
create index concurrently if not exists subscription_to_forewarn on subscription (merchant_id, live, date_next)
    where date_next is not null and failures = 0
      and (state = 'Trial' or is_long or next_period = terms_from)
      and (notice_for is null or date_next - notice_for > interval '1 day');
