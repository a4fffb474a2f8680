-- People who log in: merchants' teams and the deployment's operators, their sessions, and what they did.

create sequence person_id_seq;
create table person (
    id bigint primary key default nextval('person_id_seq'),
    email text not null,
    name text not null,
    password_hash text not null default '',
    email_confirmed_at timestamptz,
    totp_sealed bytea,
    vault_key_id text not null default '',
    totp_confirmed_at timestamptz,
    totp_step bigint not null default 0,
    recovery_codes bytea[] not null default '{}',
    operator boolean not null default false,
    language text not null default 'en',
    time_zone text not null default 'UTC',
    created_at timestamptz not null,
    totp_session bigint,
    check (totp_confirmed_at is null or totp_sealed is not null)
);
comment on table person is 'somebody who logs in; belongs to no merchant, but may be a member of any number';
comment on column person.password_hash is 'argon2id; empty until a password was chosen';
comment on column person.totp_sealed is
    'the second factor''s secret, AES-256-GCM under vault_key_id, bound to the person';
comment on column person.totp_confirmed_at is 'null while the secret was shown but no code of it was given yet';
comment on column person.totp_step is 'the newest time step whose code was used: none up to it is taken again';
comment on column person.recovery_codes is 'keyed HMACs of the codes that are left; each is removed when it is used';
comment on column person.totp_session is 'the session in which the secret was shown; no other one sees or confirms it';
-- Log-ins, like keys, are unique in a deployment.
create unique index person_by_email on person (lower(email));
create index person_operators on person (id) where operator;
create index person_sealed_under on person (vault_key_id) where totp_sealed is not null;

create table membership (
    merchant_id bigint not null references merchant (id),
    person_id bigint not null references person (id),
    role text not null check (role in ('owner', 'developer', 'support', 'viewer')),
    created_at timestamptz not null,
    primary key (merchant_id, person_id)
);
-- Serves the merchant switcher.
create index membership_by_person on membership (person_id, merchant_id);

-- An account that an operator opened has no owner until somebody is invited, whose link proves the address.
create function merchant_confirmed(of_merchant bigint) returns boolean
language sql stable parallel safe as $$
    select count(*) = 0 or bool_or(p.email_confirmed_at is not null)
      from membership s
      join person p on p.id = s.person_id
     where s.merchant_id = of_merchant and s.role = 'owner'
$$;
comment on function merchant_confirmed is
    'whether somebody stands behind an account: an operator who opened it, or an owner whose e-mail address is '
    'confirmed';

create sequence account_session_id_seq;
create table account_session (
    id bigint primary key default nextval('account_session_id_seq'),
    token_hash bytea not null,
    person_id bigint not null references person (id),
    created_at timestamptz not null,
    last_seen_at timestamptz not null,
    expires_at timestamptz not null,
    client_address text not null,
    user_agent text not null,
    confirmed_at timestamptz,
    second_factor_at timestamptz,
    merchant_id bigint,
    live boolean not null default false
) with (fillfactor = 80);
comment on column account_session.token_hash is 'keyed HMAC of the cookie''s 256 random bits, which are stored nowhere';
comment on column account_session.confirmed_at is 'when the person last gave the password in this session';
comment on column account_session.merchant_id is
    'the merchant that is looked at, and live its side; what may be seen follows from the membership alone';
create unique index account_session_by_token on account_session (token_hash);
create index account_session_by_person on account_session (person_id, last_seen_at);
-- Serves the housekeeping.
create index account_session_expired on account_session (expires_at);

-- Browsers that a person has logged in with, so that a log-in from another one is told by mail.
create table person_device (
    person_id bigint not null references person (id),
    fingerprint bytea not null,
    last_seen_at timestamptz not null,
    primary key (person_id, fingerprint)
);
comment on column person_device.fingerprint is
    'keyed HMAC of the person and of the random token in the browser''s cookie, which is stored nowhere';
-- Serves forgetting browsers that were not seen for long.
create index person_device_by_time on person_device (last_seen_at);

create sequence invitation_id_seq;
create table invitation (
    merchant_id bigint not null references merchant (id),
    id bigint not null default nextval('invitation_id_seq'),
    email text not null,
    role text not null check (role in ('owner', 'developer', 'support', 'viewer')),
    token_hash bytea not null,
    invited_by bigint references person (id),
    created_at timestamptz not null,
    expires_at timestamptz not null,
    accepted_at timestamptz,
    primary key (merchant_id, id)
);
comment on column invitation.invited_by is
    'null for an operator at the command line; else it holds while they are an owner';
create unique index invitation_by_token on invitation (token_hash);
-- Who is invited anew gets a new link; the old one stops working.
create unique index invitation_open on invitation (merchant_id, lower(email)) where accepted_at is null;

create sequence person_token_id_seq;
create table person_token (
    id bigint primary key default nextval('person_token_id_seq'),
    person_id bigint not null references person (id),
    purpose text not null check (purpose in ('reset', 'email')),
    token_hash bytea not null,
    email text not null,
    created_at timestamptz not null,
    expires_at timestamptz not null,
    used_at timestamptz
);
comment on table person_token is
    'links that were sent by mail: to choose a password, to confirm an e-mail address; each works once';
comment on column person_token.email is 'the address that the link was sent to, which its use proves';
create unique index person_token_by_hash on person_token (token_hash);
create index person_token_by_person on person_token (person_id) where used_at is null;
create index person_token_expired on person_token (expires_at);

-- Tries are counted before they are judged, so that parallel ones can't be more than the limit.
create table entry_pause (
    subject bytea primary key,
    tries integer not null,
    last_at timestamptz not null,
    until timestamptz not null
) with (fillfactor = 70);
comment on table entry_pause is
    'tries to get in that failed, by what they are counted for: an account (also one that does not exist), a '
    'client address';
comment on column entry_pause.subject is 'keyed HMAC of what the tries are counted for';
create index entry_pause_by_time on entry_pause (last_at);

-- Until when to wait after the n-th failed try in a row: not at all at first, then 30 s, doubled each time up to an
-- hour, and for half an hour at least from five tries after the first pause on (the tenth of an account). Not even
-- until now: the clocks of those who try at once differ.
create function entry_pause_until(at timestamptz, tries integer, free integer) returns timestamptz
language sql immutable as $$
    select case when tries < free then '-infinity'::timestamptz
                else at + greatest(least(interval '30 seconds' * power(2, least(tries - free, 10)), interval '1 hour'),
                                   case when tries >= free + 5 then interval '30 minutes' else interval '0' end) end
$$;

-- What each person has given back in a day without giving the password again, so that many small refunds are bounded,
-- too.
create table refund_day (
    merchant_id bigint not null references merchant (id),
    live boolean not null,
    requested_by text not null,
    day date not null,
    units numeric not null check (units > 0),
    primary key (merchant_id, live, requested_by, day)
) with (fillfactor = 70);
comment on column refund_day.units is
    'what was asked for, in dollars, euros or pounds, or what counts as one in other currencies (currency_unit)';
-- Serves the housekeeping.
create index refund_day_by_day on refund_day (day);

create sequence audit_entry_id_seq;
create table audit_entry (
    merchant_id bigint not null,
    id bigint not null default nextval('audit_entry_id_seq'),
    at timestamptz not null,
    person_id bigint,
    operator boolean not null,
    client_address text not null,
    action text not null,
    subject text not null,
    details jsonb not null,
    primary key (merchant_id, at, id)
) partition by range (at);
create table audit_entry_other partition of audit_entry default;
comment on table audit_entry is
    'append-only: who did what, when, from where; customers stand in it as ids, never with a name or an address';
comment on column audit_entry.merchant_id is '0 for what concerns a person alone';
comment on column audit_entry.person_id is 'null for the command line and for who could not log in';
comment on column audit_entry.operator is 'done as an operator of the deployment, not as a member of the team';
create index audit_entry_by_person on audit_entry (merchant_id, person_id, at, id);
create index audit_entry_by_action on audit_entry (merchant_id, action, at, id);
create index audit_entry_of_operators on audit_entry (at, id) where operator;

-- Rows leave the default partition for their month's, and months go as a whole; nothing else is ever removed.
create function refuse_audit_change() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' and tg_table_name = 'audit_entry_other' then
        return old;
    end if;
    raise exception 'audit_entry is append-only';
end $$;

create trigger audit_entry_is_append_only before update or delete on audit_entry
    for each row execute function refuse_audit_change();
