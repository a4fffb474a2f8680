-- Who has heavy work under way, so that nobody takes what others need.
create table share_of_work (
    id bigint generated always as identity primary key,
    work text not null,
    holders text[] not null,
    held_until timestamptz not null
);
comment on table share_of_work is 'work under way: one row each until it ends, or its lease runs out; few at any time';
comment on column share_of_work.holders is 'on whose account it is: person, owner, side of a merchant, client address';
