-- Where a pingback goes by what is set now, by the rules for a new one: the URL of its form, else the account's; once the
-- merchant is live, test ones to its test URL alone. Null if there is none. (domain/pingbacks/destinations.py says the same.)
create function pingback_destination(told pingback, account merchant) returns text
    language sql stable parallel safe
    as $$
        select case when told.live then coalesce(form.url, account.pingback_url)
                    when account.went_live_at is not null then account.test_pingback_url
                    else coalesce(form.url, account.test_pingback_url, account.pingback_url) end
          from (select coalesce((select p.pingback_url
                                   from payment p
                                  where p.merchant_id = told.merchant_id and p.live = told.live
                                    and p.id = told.payment_id),
                                (select s.pingback_url
                                   from subscription s
                                  where s.merchant_id = told.merchant_id and s.live = told.live
                                    and s.id = told.subscription_id)) as url) form
    $$;
