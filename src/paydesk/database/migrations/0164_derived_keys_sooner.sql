-- oldest code: 150
-- The same keys, made in a seventh of the time: a pattern over each key took longer than its hashes.
create or replace function derived_key(pads bytea, wish text) returns text
    language sql stable strict parallel safe
    return overlay(overlay(
        encode(substr(sha256(substr(pads, 65, 64) || sha256(substr(pads, 1, 64) || convert_to(wish, 'UTF8'))), 1, 16), 'hex')
        placing '4' from 13) placing '8' from 17)::uuid::text;
