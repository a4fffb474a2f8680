-- oldest code: 150
alter table person add column language_chosen boolean not null default false;
comment on column person.language_chosen is
    'whether the person chose the language; else it is what their browser asked for at the last log-in';
