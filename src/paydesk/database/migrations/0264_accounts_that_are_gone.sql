-- oldest code: 150
-- An account whose list nobody can read any more is asked for nothing, once an operator has said so.
alter table acquirer_account
    add column gone_at timestamptz,
    add column gone_because text not null default '';
comment on column acquirer_account.gone_at is 'since when it is not asked, because it can''t be read any more; null: it is';
comment on column acquirer_account.gone_because is 'why, in the operator''s words';
