-- Mails to customers: in whose language, whether the merchant wants them, and how far each merchant's events were told.

alter table customer add column language text not null default 'en';
comment on column customer.language is 'the language of the checkout page, as a tag such as de-CH; mails are written in it';

alter table merchant
    add column customer_mails boolean not null default true,
    add column test_mails boolean not null default false;
comment on column merchant.customer_mails is 'whether Paydesk writes to the merchant''s customers: receipts, subscriptions';
comment on column merchant.test_mails is 'mails about test data are sent, to the merchant instead of made-up addresses';

create table mail_place (
    merchant_id bigint primary key references merchant (id),
    read_to bigint not null default 0,
    swept_to bigint not null default 0,
    sweep_to bigint not null default 0,
    sweep_at timestamptz,
    moved_at timestamptz not null default '-infinity'
) with (fillfactor = 50);
comment on table mail_place is 'how far a merchant''s pingbacks were read for mails: each is an event that customers may hear of';
comment on column mail_place.sweep_to is 'up to here the pingbacks are read once more, at sweep_at, for what was committed late';

-- What happened before there were mails is not told.
insert into mail_place (merchant_id, read_to, swept_to, sweep_to)
select m.id, coalesce(last.id, 0), coalesce(last.id, 0), coalesce(last.id, 0)
  from merchant m
  left join lateral (select max(id) as id from pingback where merchant_id = m.id) last on true;

-- Serves the mails about renewals that failed: the few that are being tried again.
create index subscription_failing on subscription (merchant_id, id)
    where failures > 0 and state in ('Trial', 'Active');

-- Serves the forgetting of old mails.
create index mail_over on mail (created_at) where state <> 'due';
