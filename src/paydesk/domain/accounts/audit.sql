-- name: record(merchant_id, person_id, operator, client_address, action, subject, details, now)!
insert into audit_entry (merchant_id, at, person_id, operator, client_address, action, subject, details)
values (:merchant_id, :now, :person_id, :operator, :client_address, :action, :subject, :details);

-- name: list_entries(merchant_id, before_at, before_id, since, until, most)
-- The page is cut before people are joined to it; each filter has a statement and an index of its own.
with page as (
    select *
      from audit_entry
     where merchant_id = :merchant_id and at >= :since and at < :until and (at, id) < (:before_at, :before_id)
     order by at desc, id desc
     limit :most
)
select e.merchant_id, e.id, e.at, e.person_id, coalesce(p.name, '') as name, coalesce(p.email, '') as email, e.operator,
       e.client_address, e.action, e.subject, e.details as details_json
  from page e
  left join person p on p.id = e.person_id
 order by e.at desc, e.id desc;

-- name: list_entries_of_action(merchant_id, action, before_at, before_id, since, until, most)
with page as (
    select *
      from audit_entry
     where merchant_id = :merchant_id and action = :action and at >= :since and at < :until and (at, id) < (:before_at, :before_id)
     order by at desc, id desc
     limit :most
)
select e.merchant_id, e.id, e.at, e.person_id, coalesce(p.name, '') as name, coalesce(p.email, '') as email, e.operator,
       e.client_address, e.action, e.subject, e.details as details_json
  from page e
  left join person p on p.id = e.person_id
 order by e.at desc, e.id desc;

-- name: list_entries_of_member(merchant_id, person_id, action, before_at, before_id, since, until, most)
with page as (
    select *
      from audit_entry
     where merchant_id = :merchant_id and person_id = :person_id and (:action::text is null or action = :action)
       and at >= :since and at < :until and (at, id) < (:before_at, :before_id)
     order by at desc, id desc
     limit :most
)
select e.merchant_id, e.id, e.at, e.person_id, coalesce(p.name, '') as name, coalesce(p.email, '') as email, e.operator,
       e.client_address, e.action, e.subject, e.details as details_json
  from page e
  left join person p on p.id = e.person_id
 order by e.at desc, e.id desc;

-- name: list_own_entries(person_id, before_at, before_id, since, until, most)
with page as (
    select *
      from audit_entry
     where person_id = :person_id and merchant_id = 0 and at >= :since and at < :until and (at, id) < (:before_at, :before_id)
     order by at desc, id desc
     limit :most
)
select e.merchant_id, e.id, e.at, e.person_id, coalesce(p.name, '') as name, coalesce(p.email, '') as email, e.operator,
       e.client_address, e.action, e.subject, e.details as details_json
  from page e
  left join person p on p.id = e.person_id
 order by e.at desc, e.id desc;
