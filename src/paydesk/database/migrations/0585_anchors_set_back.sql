-- oldest code: 150
-- A calendar whose anchor was moved by a pause, or by a plan of other periods, may have it some periods further back, where
-- months are too short: by so many `skipped` grows, and none of them was missed. Code of before moves anchors, too.
alter table subscription add column set_back integer not null default 0;
comment on column subscription.set_back is
    'by how many of those in skipped the anchor lies further back than it would have to: they were not missed';

create function anchor_is_set_back() returns trigger
    language plpgsql
    as $$
begin
    new.set_back := old.set_back + coalesce(new.skipped, 0) - coalesce(old.skipped, 0);
    return new;
end
$$;
comment on function anchor_is_set_back is 'what skipped grows by with another anchor counts as nothing that was missed';
create trigger anchor_is_set_back before update of anchor on subscription for each row
    when (new.skipped is distinct from old.skipped)
    execute function anchor_is_set_back();
