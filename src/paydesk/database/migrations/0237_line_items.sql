-- oldest code: 150
-- What a checkout is for, line by line, where its shop says so.
alter table checkout add column line_items jsonb;
comment on column checkout.line_items is 'names, prices and quantities; null where only the description says what is sold';
