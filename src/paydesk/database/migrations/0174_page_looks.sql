-- oldest code: 150
-- Two facts about a page of an acquirer's. Code of before asks as often as it did, and waits for the page's own end.
alter table hosted_page add column looked_at timestamptz;
alter table hosted_page add column ending boolean not null default false;
comment on column hosted_page.looked_at is 'when the acquirer was last asked how it stands, in real time: not again at once';
comment on column hosted_page.ending is 'nobody is to pay on it any more: it is ended at the acquirer, as soon as that goes';
