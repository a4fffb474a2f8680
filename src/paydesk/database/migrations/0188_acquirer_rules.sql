-- oldest code: 150
-- Which account takes a payment, by ordered rules: the first one that fits, and whose account serves it. Code of before
-- asks the account of the settings.
create sequence acquirer_rule_id_seq;
create table acquirer_rule (
    id bigint primary key default nextval('acquirer_rule_id_seq'),
    account text not null,
    for_merchant_id bigint references merchant (id),
    currency text not null default '',
    country text not null default '',
    brand text not null default '',
    least numeric(20, 4),
    most numeric(20, 4),
    share smallint not null default 100 check (share between 1 and 100),
    created_at timestamptz not null
);
comment on table acquirer_rule is 'tried in the order of their ids; what is empty or null fits everything';
comment on column acquirer_rule.account is 'an account that was added, or that of the settings';
comment on column acquirer_rule.share is 'of the orders that it fits, how many of a hundred, by a hash of the order';
