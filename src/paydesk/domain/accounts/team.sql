-- name: add_member(merchant_id, person_id, role, now)$
-- No row: in the team already, and the role stays as it is.
insert into membership (merchant_id, person_id, role, created_at)
values (:merchant_id, :person_id, :role, :now)
    on conflict do nothing
returning person_id;

-- name: memberships_of(person_id)
select b.merchant_id, m.name as merchant_name, b.role
  from membership b
  join merchant m on m.id = b.merchant_id
 where b.person_id = :person_id
 order by m.name, b.merchant_id;

-- name: members_of(merchant_id)
select b.person_id, p.name, p.email, b.role, p.totp_confirmed_at is not null as second_factor, b.created_at
  from membership b
  join person p on p.id = b.person_id
 where b.merchant_id = :merchant_id
 order by p.name, b.person_id;

-- name: member_of(merchant_id, person_id)^
select b.person_id, p.name, p.email, b.role, p.totp_confirmed_at is not null as second_factor, b.created_at
  from membership b
  join person p on p.id = b.person_id
 where b.merchant_id = :merchant_id and b.person_id = :person_id;

-- name: lock_team(merchant_id)
-- Whoever changes a team waits here for whoever else does: what is looked at next is true until the transaction ends.
select person_id, role from membership where merchant_id = :merchant_id order by person_id for update;

-- name: change_role(merchant_id, person_id, role)$
-- A team keeps an owner.
update membership b
   set role = :role
 where b.merchant_id = :merchant_id and b.person_id = :person_id
   and (b.role <> 'owner' or :role = 'owner' or exists (
       select from membership o where o.merchant_id = :merchant_id and o.role = 'owner' and o.person_id <> :person_id))
returning person_id;

-- name: remove_member(merchant_id, person_id)$
-- A team keeps an owner.
delete from membership b
 where b.merchant_id = :merchant_id and b.person_id = :person_id
   and (b.role <> 'owner' or exists (
       select from membership o where o.merchant_id = :merchant_id and o.role = 'owner' and o.person_id <> :person_id))
returning person_id;

-- name: is_member_by_email(merchant_id, email)$
select exists (
    select from person p join membership b on b.person_id = p.id
     where b.merchant_id = :merchant_id and lower(p.email) = lower(:email));

-- name: invite(merchant_id, email, role, token_hash, invited_by, expires_at, now)$
-- Inviting anew replaces the link and the role.
insert into invitation (merchant_id, email, role, token_hash, invited_by, created_at, expires_at)
values (:merchant_id, :email, :role, :token_hash, :invited_by, :now, :expires_at)
    on conflict (merchant_id, lower(email)) where accepted_at is null do update
   set email = excluded.email, role = excluded.role, token_hash = excluded.token_hash,
       invited_by = excluded.invited_by, created_at = excluded.created_at, expires_at = excluded.expires_at
returning id;

-- name: invitations_of(merchant_id, now)
select i.merchant_id, i.id, m.name as merchant_name, i.email, i.role, coalesce(p.name, '') as invited_by, i.created_at,
       i.expires_at, false as has_account
  from invitation i
  join merchant m on m.id = i.merchant_id
  left join person p on p.id = i.invited_by
 where i.merchant_id = :merchant_id and i.accepted_at is null and i.expires_at > :now
 order by i.id;

-- name: find_invitation(token_hash, now)^
-- An invitation holds as long as who made it is an owner.
select i.merchant_id, i.id, m.name as merchant_name, i.email, i.role, coalesce(p.name, '') as invited_by, i.created_at,
       i.expires_at, exists (select from person q where lower(q.email) = lower(i.email)) as has_account
  from invitation i
  join merchant m on m.id = i.merchant_id
  left join person p on p.id = i.invited_by
 where i.token_hash = :token_hash and i.accepted_at is null and i.expires_at > :now
   and (i.invited_by is null or exists (
       select from membership b
        where b.merchant_id = i.merchant_id and b.person_id = i.invited_by and b.role = 'owner'));

-- name: accept(token_hash, now)^
-- Of several that use a link at once, one gets the row; it holds as long as who made it is an owner.
update invitation i
   set accepted_at = :now
 where i.token_hash = :token_hash and i.accepted_at is null and i.expires_at > :now
   and (i.invited_by is null or exists (
       select from membership b
        where b.merchant_id = i.merchant_id and b.person_id = i.invited_by and b.role = 'owner'))
returning i.merchant_id, i.id, i.email, i.role;

-- name: withdraw(merchant_id, id)$
delete from invitation where merchant_id = :merchant_id and id = :id and accepted_at is null returning email;
