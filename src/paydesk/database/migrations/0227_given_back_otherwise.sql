-- oldest code: 150
-- A charge that must not be, and that its acquirer will not give back: an operator says how its customer has the money.
alter table purchase_given_back add column because text not null default '';
comment on column purchase_given_back.because is
    'how its customer has the money, where the acquirer did not give it back; the operator''s words';
