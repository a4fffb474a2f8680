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
-- Serves the forgetting of old mails.
create index mail_over on mail (created_at) where state <> 'due';
-- Serve the operator's list of mails, newest first: of all, and of the few that were given up.
create unique index mail_by_id on mail (id);
create index mail_given_up on mail (id) where state = 'failed';
create index mail_sealed_under on mail ((facts #>> '{token,vault_key_id}'))
    where facts ? 'token';

create table mail_place (
    merchant_id bigint primary key references merchant (id),
    read_to bigint not null default 0,
    swept_to bigint not null default 0,
    sweep_to bigint not null default 0,
    sweep_at timestamptz,
    moved_at timestamptz not null default '-infinity'
) with (fillfactor = 50);
comment on table mail_place is
    'how far a merchant''s pingbacks were read for mails: each is an event that customers may hear of';
comment on column mail_place.sweep_to is
    'up to here the pingbacks are read once more, at sweep_at, for what was committed late';

-- How many mails went to one address, in one merchant's name and by one person's doing in a day (UTC): each has a cap.
-- What a crash forgets of it is counted anew.
create unlogged table mail_day (
    day date not null,
    subject bytea not null,
    mails integer not null,
    primary key (day, subject)
) with (fillfactor = 70);
comment on column mail_day.subject is 'hash of what is counted; of an address, of its sort of mail too';

-- Who reads what concerns a merchant's business: its owners at their confirmed addresses, or its own address if there
-- is no such owner (person_id 0).
create function mail_owners(of_merchant bigint)
returns table (person_id bigint, email text, language text, name text)
language sql stable
as $$
    with owner as (
        select p.id, p.email, p.language, p.name
          from membership b
          join person p on p.id = b.person_id
         where b.merchant_id = of_merchant and b.role = 'owner' and p.email_confirmed_at is not null
    )
    select * from owner
     union all
    select 0, m.email, 'en', '' from merchant m where m.id = of_merchant and not exists (select from owner)
$$;

-- Where a mail to a merchant goes: to its own address if a member of the team has proved that it is theirs, or if an
-- operator opened the account and nobody owns it yet; else to the owner who was first with a confirmed address; else
-- nowhere (empty).
create function mail_reach(of_merchant bigint, address text) returns text
language sql stable parallel safe as $$
    with member as (
        select s.role, p.id, p.email, p.email_confirmed_at is not null as confirmed
          from membership s
          join person p on p.id = s.person_id
         where s.merchant_id = of_merchant
    )
    select case when not exists (select from member where role = 'owner')
                  or exists (select from member where confirmed and lower(email) = lower(address)) then address
                else coalesce((select email from member where role = 'owner' and confirmed order by id limit 1), '')
            end
$$;
comment on function mail_reach is 'the address that a mail to a merchant goes to, empty if none is confirmed';
