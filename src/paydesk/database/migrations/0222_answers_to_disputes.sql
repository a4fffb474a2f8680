-- oldest code: 150
-- The merchant's answer to a dispute: what is being written, whether it was handed to the bank, and until when that may be.
alter table chargeback add column respond_by timestamptz;
alter table chargeback add column evidence_draft text not null default '';
alter table chargeback add column evidence_state text not null default '';
alter table chargeback add column evidence_key text not null default '';
alter table chargeback add column evidence_tried_at timestamptz;
comment on column chargeback.respond_by is 'until when the acquirer takes evidence, in real time; null if it does not say';
comment on column chargeback.evidence_draft is 'what the merchant is writing, which the bank has not been given';
comment on column chargeback.evidence_state is
    'sending, sent, refused, unknown: what became of handing the evidence over; empty: not tried, or by older code';
comment on column chargeback.evidence_key is 'names the last handing over, so that its answer changes no later one';
comment on column chargeback.evidence_tried_at is 'when it was last begun to hand the evidence over, in real time';
