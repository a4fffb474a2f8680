-- The keys under which acquirers are asked are made of what is wished, so that a database that forgets something makes the
-- same key again. Nothing from a sequence is in them: sequences go back too.
alter table merchant
    add column key_tag text not null default replace(gen_random_uuid()::text, '-', ''),
    add column test_generation integer not null default 0;
comment on column merchant.key_tag is 'drawn once: stands for the merchant in the keys of its orders, instead of an id that another may get';
comment on column merchant.test_generation is 'raised when the test side is reset, so that its orders get other keys than those before';

alter table payment_attempt add column number integer;
comment on column payment_attempt.number is 'of the attempts to take this payment; null for those whose key was drawn';

-- HMAC-SHA256 in the form of a UUID of version 4. pads are the two blocks that HMAC makes of its secret, inner and outer.
create function derived_key(pads bytea, wish text) returns text
    language sql stable strict parallel safe
    return regexp_replace(
        encode(sha256(substr(pads, 65, 64) || sha256(substr(pads, 1, 64) || convert_to(wish, 'UTF8'))), 'hex'),
        '^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$', '\1-\2-4\3-8\4-\5');

-- The number of a payment's next attempt, whatever became of those before. Volatile, so that it sees what was committed
-- before the caller got its lock.
create function next_attempt(of_merchant bigint, of_live boolean, of_payment bigint) returns integer
    language sql volatile
    return (select greatest(count(*), max(number))::integer + 1
              from payment_attempt
             where merchant_id = of_merchant and live = of_live and payment_id = of_payment);

-- The key of a capture, void or refund: by the name that the caller gave it, else by its number of this kind on the
-- payment, refused ones counted. A name that was drawn, which begins with 'drawn ', is none of the caller's.
create function movement_key(
    pads bytea, of_key text, of_merchant bigint, of_live boolean, of_payment bigint, of_kind text, request_key text
) returns text
    language sql volatile
    return derived_key(pads, of_kind || ' ' || of_key || ' ' || case
        when not starts_with(request_key, 'drawn ') then 'key ' || request_key
        else 'number ' || (select count(*) + 1
                             from movement
                            where merchant_id = of_merchant and live = of_live and payment_id = of_payment
                              and kind = of_kind)
    end);
