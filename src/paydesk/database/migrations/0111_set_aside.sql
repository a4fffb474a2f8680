-- Whether something was set aside and is to be left alone: it has an open alarm that was raised after a time.
create function is_set_aside(merchant bigint, side boolean, about text, since timestamptz) returns boolean
language sql stable as $$
    select exists (select
                     from alarm a
                    where a.merchant_id = merchant and a.live = side and a.kind = 'set_aside' and a.subject = about
                      and a.settled_at is null and a.last_at > since)
$$;
