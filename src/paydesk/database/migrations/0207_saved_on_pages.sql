-- oldest code: 150
-- Cards that customers type on their acquirer's page, which keeps them: there a page says nothing of whether their bank has
-- seen them.
alter table saved_instrument add column authenticated boolean;
comment on column saved_instrument.authenticated is
    'whether its bank saw the customer as they paid on a page of the acquirer''s; null: they typed it on ours';
