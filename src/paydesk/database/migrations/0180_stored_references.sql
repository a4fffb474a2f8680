-- oldest code: 150
-- What an acquirer keeps an instrument under, to charge it again, stands with the instrument itself: it is another one
-- with each instrument, and no network reference. The table keeps its name, as code of before writes into it while this
-- code runs beside it, and a second name for the same rows would only have to be learnt; what is no card says so in
-- place of a brand. Code of before renews what Stripe keeps by the network reference, which is written as ever.
alter table card add column stored_reference text not null default '';
alter table card add column acquirer text not null default '';
comment on table card is 'what is paid with: a card, or another instrument, which its brand then names';
comment on column card.stored_reference is
    'what its acquirer keeps it under, to charge it without the customer; empty if it is charged by its number, or not';
comment on column card.acquirer is 'the account in which it is kept; empty if it is not';
