-- A name that was drawn for a request is none of its caller's, though they may come back with it: it does not enter the key
-- of a capture, void or refund, which has its number of this kind on the payment instead, as where there is no name.
create or replace function movement_key(
    pads bytea, of_key text, of_merchant bigint, of_live boolean, of_payment bigint, of_kind text, request_key text
) returns text
    language sql volatile
    return derived_key(pads, of_kind || ' ' || of_key || ' ' || case
        when request_key !~ '^drawn[ -][0-9a-f]{32}$' then 'key ' || request_key
        else 'number ' || (select count(*) + 1
                             from movement
                            where merchant_id = of_merchant and live = of_live and payment_id = of_payment
                              and kind = of_kind)
    end);
