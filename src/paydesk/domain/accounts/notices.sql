-- name: tell_person(person_id, facts, what, now)!
-- A security notice, if there is such a person: the same statement for nobody, so that its time tells nothing.
insert into mail (merchant_id, live, kind, recipient, language, facts, once, due_at, created_at)
select 0, null, 'security_notice', p.email, p.language, :facts::jsonb || jsonb_build_object('name', p.name),
       :what::text || ' ' || p.id || ' ' || :now::timestamptz, :now, :now
  from person p
 where p.id = :person_id
    on conflict (merchant_id, once) do nothing;

-- name: warn_owners(merchant_id, facts, what, now)!
-- A security notice to everybody who owns the shop, whoever of the team acted.
insert into mail (merchant_id, live, kind, recipient, language, facts, once, due_at, created_at)
select 0, null, 'security_notice', p.email, p.language, :facts::jsonb || jsonb_build_object('name', p.name),
       :what::text || ' ' || b.merchant_id || ' ' || p.id || ' ' || :now::timestamptz, :now, :now
  from membership b
  join person p on p.id = b.person_id
 where b.merchant_id = :merchant_id and b.role = 'owner'
    on conflict (merchant_id, once) do nothing;
