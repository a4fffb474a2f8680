-- oldest code: 150
-- A subscription as it stands, with its open change and the plan that this brings. Rows fill a class, whose fields are
-- these columns: other ones go into another view, beside this one. Code of before reads subscription_standing.
create view subscription_planned as
select w.*, c.type as change_type, c.due_at as change_due_at, c.since as change_since, c.asked_by as change_by,
       case when c.package_version_id is not null
            then (select to_jsonb(t)::text
                    from package_terms t
                   where t.merchant_id = c.merchant_id and t.live = c.live
                     and t.package_version_id = c.package_version_id)
       end as change_terms,
       m.extra_events @> array['subscription_paused'] as tells_pauses
  from subscription_whole w
  join merchant m on m.id = w.merchant_id
  left join subscription_change c
    on c.merchant_id = w.merchant_id and c.live = w.live and c.subscription_id = w.id and c.state = 'open';

-- Code of before knows no change of plan: it sees none, and no date.
create or replace view subscription_standing as
select w.*, c.type as change_type, c.due_at as change_due_at, c.since as change_since, c.asked_by as change_by,
       m.extra_events @> array['subscription_paused'] as tells_pauses
  from subscription_whole w
  join merchant m on m.id = w.merchant_id
  left join subscription_change c
    on c.merchant_id = w.merchant_id and c.live = w.live and c.subscription_id = w.id and c.state = 'open'
   and c.type in ('cancel', 'resume');
