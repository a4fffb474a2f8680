-- oldest code: 140
-- Purchases that an acquirer has and our books don't, and that were given back whole: committed before the acquirer is asked.
create table purchase_given_back (
    acquirer text not null,
    idempotency_key text not null,
    reference text not null,
    merchant_order_id text not null,
    amount numeric(20, 4) not null,
    currency text not null,
    requested_by text not null,
    state text not null check (state in ('processing', 'done', 'refused')),
    refusal text not null default '',
    created_at timestamptz not null,
    finished_at timestamptz,
    primary key (acquirer, idempotency_key),
    check ((state = 'processing') = (finished_at is null))
);
comment on table purchase_given_back is 'whose payment nobody has: paid twice after our database forgot, or of a merchant that it forgot';
