-- oldest code: 150
-- A database that was restored beside its deployment, for staging, says so: it has no live side.
alter table deployment add column copied_at timestamptz;
comment on column deployment.copied_at is 'since when this is a copy of another deployment''s database; null: it is none. Never taken back';

create function refuse_live_money() returns trigger
    language plpgsql as $$
begin
    raise exception 'this database is a copy of another deployment''s: nothing is done with live payments here'
        using errcode = 'object_not_in_prerequisite_state';
end $$;

-- Money moves only after its intent is committed, so a copy commits none, whatever asks for it. Off until then.
create trigger copies_move_no_live_money before insert on payment_attempt
    for each row when (new.live) execute function refuse_live_money();
alter table payment_attempt disable trigger copies_move_no_live_money;
create trigger copies_move_no_live_money before insert on movement
    for each row when (new.live) execute function refuse_live_money();
alter table movement disable trigger copies_move_no_live_money;
create trigger copies_move_no_live_money before insert on card_change
    for each row when (new.live) execute function refuse_live_money();
alter table card_change disable trigger copies_move_no_live_money;
