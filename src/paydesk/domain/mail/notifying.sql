-- name: tell_owners(merchant_id, kind, facts, once, now)!
insert into mail (merchant_id, live, kind, recipient, language, facts, once, due_at, created_at)
select :merchant_id, null, :kind, r.email, r.language, :facts::jsonb || jsonb_build_object('name', r.name),
       :once || ' ' || r.person_id, :now, :now
  from mail_owners(:merchant_id) r
    on conflict (merchant_id, once) do nothing;
