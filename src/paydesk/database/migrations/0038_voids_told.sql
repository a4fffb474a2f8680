-- Owners are told of authorizations that were voided because nobody shipped in time; `mailed` says whether they were.
create index movement_void_to_tell on movement (merchant_id, id)
 where kind = 'void' and requested_by = 'deadline' and state = 'done' and not mailed;

-- Who reads what concerns a merchant's business: its owners at their confirmed addresses, or its own address if there is
-- no such owner (person_id 0).
create function mail_owners(of_merchant bigint)
returns table (person_id bigint, email text, language text, name text)
language sql stable
as $$
    with owner as (
        select p.id, p.email, p.language, p.name
          from membership b
          join person p on p.id = b.person_id
         where b.merchant_id = of_merchant and b.role = 'owner' and p.email_confirmed_at is not null
    )
    select * from owner
     union all
    select 0, m.email, 'en', '' from merchant m where m.id = of_merchant and not exists (select from owner)
$$;
