-- A key that moves money may be made in test mode by a member of the team who may not give money back; it moves test money
-- alone, also once the shop is live. Those of before keep what they may.
alter table merchant_key add column moves_live boolean not null default true;
comment on column merchant_key.moves_live is 'whether the scope to move money holds for live payments, too';
