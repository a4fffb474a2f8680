-- Mails to customers and merchants, queued in the transaction of what they tell.

create sequence mail_id_seq;

create table mail (
    merchant_id bigint not null default 0,
    live boolean,
    id bigint not null default nextval('mail_id_seq'),
    kind text not null,
    recipient text not null,
    language text not null,
    facts jsonb not null,
    once text not null,
    state text not null default 'due' check (state in ('due', 'sent', 'failed')),
    attempts integer not null default 0,
    due_at timestamptz not null,
    leased_until timestamptz,
    created_at timestamptz not null,
    sent_at timestamptz,
    last_error text not null default '',
    primary key (merchant_id, id)
) with (fillfactor = 80);
comment on column mail.merchant_id is '0 for what concerns a person alone; live is null then';
comment on column mail.facts is 'what the template shows; secrets in it are sealed (domain/mail/queueing.py)';
comment on column mail.once is 'names the event: a merchant has one mail per event';
create unique index mail_once on mail (merchant_id, once);
-- Serves the sender's claim.
create index mail_due on mail (due_at) where state = 'due';
