-- oldest code: 150
-- Whoever is logged in in one cell is handed over to another by a token that opens one session. Which have been used is
-- logged, not kept in memory: after a crash none may open a second one.
create table hand_over_used (
    nonce text primary key,
    good_until timestamptz not null
);
comment on table hand_over_used is 'tokens by which people came here from other cells, until nobody believes them any more';
comment on column hand_over_used.good_until is 'from then on the token is refused for its age; UTC';

-- Who has accounts in several cells has one line of their address in each besides the one that log-ins are led by.
comment on column directory.kind is
    'merchant, public_key, private_key, email or account; later code may know more';
comment on column directory.name is
    'a merchant''s id; of all others a fingerprint, in hex, for an account with its cell''s number behind: what is not sealed is not here';
