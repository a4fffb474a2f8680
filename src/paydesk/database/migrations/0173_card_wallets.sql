-- oldest code: 150
alter table card add column wallet text not null default '';
comment on column card.wallet is 'the wallet that the card was in when its customer paid on a page of the acquirer''s';
