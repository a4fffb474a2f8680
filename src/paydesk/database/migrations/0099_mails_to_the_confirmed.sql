-- Where a mail to a merchant goes: to its own address if a member of the team has proved that it is theirs, or if an
-- operator opened the account and nobody owns it yet; else to the owner who was first with a confirmed address; else
-- nowhere (empty).
create function mail_reach(of_merchant bigint, address text) returns text
language sql stable parallel safe as $$
    with member as (
        select s.role, p.id, p.email, p.email_confirmed_at is not null as confirmed
          from membership s
          join person p on p.id = s.person_id
         where s.merchant_id = of_merchant
    )
    select case when not exists (select from member where role = 'owner')
                  or exists (select from member where confirmed and lower(email) = lower(address)) then address
                else coalesce((select email from member where role = 'owner' and confirmed order by id limit 1), '')
            end
$$;
comment on function mail_reach is 'the address that a mail to a merchant goes to, empty if none is confirmed';
