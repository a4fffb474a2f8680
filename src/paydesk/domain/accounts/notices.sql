-- name: tell_person(person_id, facts, what, now)!
-- A security notice, if there is such a person: the same statement for nobody, so that its time tells nothing.
insert into mail (merchant_id, live, kind, recipient, language, facts, once, due_at, created_at)
select 0, null, 'security_notice', p.email, p.language, :facts::jsonb || jsonb_build_object('name', p.name),
       :what::text || ' ' || p.id || ' ' || :now::timestamptz, :now, :now
  from person p
 where p.id = :person_id
    on conflict (merchant_id, once) do nothing;

-- name: warn_owners(merchant_id, person_id, facts, what, now)!
-- A security notice to everybody who owns the shop, and to who acted: it may have been somebody else with their password.
insert into mail (merchant_id, live, kind, recipient, language, facts, once, due_at, created_at)
select 0, null, 'security_notice', p.email, p.language,
       :facts::jsonb || jsonb_build_object('name', p.name, 'shop', m.name, 'by', a.name),
       :what::text || ' ' || m.id || ' ' || p.id || ' ' || :now::timestamptz, :now, :now
  from merchant m
  join person a on a.id = :person_id
  join membership b on b.merchant_id = m.id and (b.role = 'owner' or b.person_id = a.id)
  join person p on p.id = b.person_id
 where m.id = :merchant_id
    on conflict (merchant_id, once) do nothing;
