-- How many mails went to one address, in one merchant's name and by one person's doing in a day (UTC): each has a cap.
-- What a crash forgets of it is counted anew.
create unlogged table mail_day (
    day date not null,
    subject bytea not null,
    mails integer not null,
    primary key (day, subject)
) with (fillfactor = 70);
comment on column mail_day.subject is 'hash of what is counted; of an address, of its sort of mail too';
