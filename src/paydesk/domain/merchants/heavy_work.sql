-- name: owner_of(merchant_id)$
-- Who opened the account; whatever side of whatever shop somebody owns counts for the one owner.
select person_id
  from membership
 where merchant_id = :merchant_id and role = 'owner'
 order by created_at, person_id
 limit 1;

-- name: lock_shares()!
-- Who counts and who takes come one after the other, or two could take the last share.
lock table share_of_work in exclusive mode;

-- name: forget_shares(work)!
-- What ended without saying so.
delete from share_of_work where work = :work and held_until <= clock_timestamp();

-- name: take_share(work, holders, limits, lease)$
-- One more under way, unless a holder has as many as it may.
insert into share_of_work (work, holders, held_until)
select :work, :holders::text[], clock_timestamp() + :lease::interval
 where not exists (
    select
      from unnest(:holders::text[], :limits::integer[]) as mine (holder, most)
     where (select count(*) from share_of_work s where s.work = :work and mine.holder = any(s.holders)) >= mine.most
 )
returning id;

-- name: keep_share(id, lease)!
update share_of_work set held_until = clock_timestamp() + :lease::interval where id = :id;

-- name: let_share_go(id)!
delete from share_of_work where id = :id;
