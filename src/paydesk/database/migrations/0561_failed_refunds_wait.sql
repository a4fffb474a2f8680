-- oldest code: 150
-- Where cells share an account, each reads all that failed of its refunds, and knows only those of its own merchants. What
-- is not known here waits: its merchant may come from another cell before anybody there has booked it.
create table failed_refund_waiting (
    acquirer text not null,
    acquirer_reference text not null,
    told jsonb not null,
    nowhere_since timestamptz not null,
    last_at timestamptz not null,
    next_at timestamptz,
    tries integer not null default 0,
    alarmed_at timestamptz,
    primary key (acquirer, acquirer_reference)
);
comment on table failed_refund_waiting is 'refunds that failed, as they were last told, of which no refund is known here';
comment on column failed_refund_waiting.nowhere_since is 'since when no cell has said that it has it';
comment on column failed_refund_waiting.last_at is 'when its acquirer told it last: it may tell it again for weeks';
comment on column failed_refund_waiting.next_at is
    'when it is tried again; null: another cell has booked it, which is remembered as long as it may be told again';
comment on column failed_refund_waiting.alarmed_at is 'since when an operator is told that no cell knows it; null: not so';
-- Serves the claim of those to be tried again, of which those come first that were tried the least.
create index failed_refund_waiting_due on failed_refund_waiting (acquirer, tries, next_at);
-- Serves the forgetting of those that were not told for long.
create index failed_refund_waiting_told on failed_refund_waiting (acquirer, last_at);
