-- oldest code: 150
-- Whether an acquirer's list had a purchase under this number of a wish, or one of the next nine, that our books had
-- forgotten and nobody has looked after: then nothing is charged beside it. The key is made of what stands before and after
-- the number.
create function was_forgotten(pads bytea, of_acquirer text, before text, of_number integer, after text) returns boolean
    language sql stable
    return exists (
        select
          from generate_series(of_number, of_number + 9) n
          join alarm l
            on l.merchant_id = 0 and l.live and l.kind = 'not_reconciled' and l.settled_at is null
           and l.subject = 'purchase ' || derived_key(pads, before || n || after) || ' at ' || of_acquirer);
