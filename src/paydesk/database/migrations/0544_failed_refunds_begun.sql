-- oldest code: 150
-- An acquirer that was never read may be away at the first try alone: how long it can't be read counts from there.
alter table failed_refund_reading add column began_at timestamptz not null default now();
comment on column failed_refund_reading.began_at is 'when it was first tried, from when it is late until read_at is known';
