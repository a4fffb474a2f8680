-- oldest code: 150
-- Attempts whose customer pays on a page of the acquirer's. Beside the attempt, for few attempts have one, and what stands
-- here is read by whoever asks the acquirer again. Code of before asks for such an attempt by its key alone, and finds it.
create table hosted_page (
    merchant_id bigint not null,
    live boolean not null,
    attempt_id bigint not null,
    asked text not null,
    expires_at timestamptz not null,
    primary key (merchant_id, attempt_id)
);
comment on table hosted_page is 'what was asked for the page of an attempt, so that a repeat asks for just the same';
comment on column hosted_page.asked is
    'the request without its key, the e-mail address and the link back, which are in the rows it is of; empty once erased';
comment on column hosted_page.expires_at is 'nobody can pay on the page from then on, in real time';
