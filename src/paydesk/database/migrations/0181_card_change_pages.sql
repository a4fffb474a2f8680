-- oldest code: 150
-- What is charged may be replaced on a page of the acquirer's, too: the change is a page that takes nothing, from the
-- moment that its intent is committed. Code of before asks for such a change by its key alone, and finds it once its
-- customer is done.
alter table card_change add column page_asked text not null default '';
alter table card_change add column page_reference text not null default '';
alter table card_change add column page_currency text not null default '';
alter table card_change add column page_ends_at timestamptz;
comment on column card_change.page_asked is
    'the request for its page without its key, the e-mail address and the link back, so that a repeat asks for just the '
    'same; empty without a page, and once erased';
comment on column card_change.page_reference is 'what its acquirer calls the page; empty until that is known';
comment on column card_change.page_currency is 'the currency for which what is kept on the page has to be good';
comment on column card_change.page_ends_at is
    'nobody can choose anything on the page from then on, in real time; null without a page';
