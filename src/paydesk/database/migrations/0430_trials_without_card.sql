-- oldest code: 150
-- Whether a merchant's free trials begin without a card. Code of before asks for one; nobody switches this on before all
-- processes know it.
alter table merchant add column trials_without_card boolean not null default false;
comment on column merchant.trials_without_card is
    'its free trials begin without a card, and end with the trial unless one is given';
