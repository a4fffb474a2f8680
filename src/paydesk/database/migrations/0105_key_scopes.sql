-- What a key pair may do: sign checkout forms, read by the API, and change things by it, which moves money. Keys of before
-- keep all three.
alter table merchant_key add column scopes text[] not null default '{sign,read,move}'
    check (cardinality(scopes) > 0 and scopes <@ array['sign', 'read', 'move']);
