-- oldest code: 150
alter table subscription_change add column notice_at timestamptz;
comment on column subscription_change.notice_at is 'when the customer was told of the first charge by the plan it brings';
