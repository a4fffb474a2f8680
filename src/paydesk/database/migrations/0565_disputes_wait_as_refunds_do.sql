-- oldest code: 150
-- locks: failed_refund_waiting, dispute_waiting
-- Of disputes that are not known here the other cells are asked, too, as of failed refunds; and what waits says for what.
alter table failed_refund_waiting
    add column first_at timestamptz not null default now(),
    add column elsewhere_since timestamptz,
    add column stands text,
    add column reason text not null default '';
update failed_refund_waiting set first_at = nowhere_since;
comment on column failed_refund_waiting.first_at is 'when it was told first';
comment on column failed_refund_waiting.elsewhere_since is
    'since when another cell says that it has it, and has not booked it; null: it does not say so';
comment on column failed_refund_waiting.stands is 'how it stood by what other cells said last; null: they were not asked yet';
comment on column failed_refund_waiting.reason is 'what it waits for, in words';

alter table dispute_waiting
    add column nowhere_since timestamptz not null default now(),
    add column elsewhere_since timestamptz,
    add column alarmed_at timestamptz,
    add column stands text;
comment on column dispute_waiting.nowhere_since is 'since when no cell has said that it has its payment';
comment on column dispute_waiting.elsewhere_since is
    'since when another cell says that it has its payment, and has not booked it; null: it does not say so';
comment on column dispute_waiting.alarmed_at is
    'since when an operator is told that no cell has its payment, or none books it; null: not so';
comment on column dispute_waiting.stands is
    'how it stood by what other cells said last; null: its payment is here, and the reason says why it waits';
-- Serves the claim of those to be tried again, of which those come first that were tried the least.
create index dispute_waiting_to_try on dispute_waiting (acquirer, tries, next_at);
drop index dispute_waiting_due;
-- Serve every few seconds: those that nobody tries any more, and the forgetting, whoever reads the account.
create index dispute_waiting_untried on dispute_waiting (next_at)
 where alarmed_at is null and stands is distinct from 'over';
create index dispute_waiting_over on dispute_waiting (last_at) where stands = 'over';
create index failed_refund_waiting_untried on failed_refund_waiting (next_at) where alarmed_at is null;
create index failed_refund_waiting_last on failed_refund_waiting (last_at);
drop index failed_refund_waiting_told;
