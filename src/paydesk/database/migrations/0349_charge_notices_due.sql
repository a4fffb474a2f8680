-- oldest code: 150
-- outside a transaction
create index concurrently if not exists subscription_to_announce on subscription (merchant_id, live, date_next)
    where date_next is not null and charging_attempt_id is null and failures = 0
      and (state = 'Trial' or is_long or next_period = terms_from)
      and (notice_for is null or date_next - notice_for > interval '1 day');
