-- oldest code: 150
-- What an acquirer told wrong, or what is wrong for another reason, is set right in the operator's own books by a posting of
-- its own: what was told first stays as it is.
alter table proceeds_finding
    add column corrected numeric not null default 0,
    add column corrected_currency text not null default '',
    add column corrected_account text not null default '';
comment on column proceeds_finding.corrected is
    'what an operator has posted since, as what the acquirer owes more (negative: less); 0: nothing, or it was taken back';
comment on column proceeds_finding.corrected_account is 'the account on the other side of that posting';
