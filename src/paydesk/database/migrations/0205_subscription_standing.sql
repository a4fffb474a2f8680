-- oldest code: 150
-- A subscription as it stands, with its open change, if there is one. Rows fill a class, whose fields are these columns:
-- other ones go into another view, beside this one. Code of before reads subscription_whole.
create view subscription_standing as
select w.*, c.type as change_type, c.due_at as change_due_at, c.since as change_since, c.asked_by as change_by,
       m.extra_events @> array['subscription_paused'] as tells_pauses
  from subscription_whole w
  join merchant m on m.id = w.merchant_id
  left join subscription_change c
    on c.merchant_id = w.merchant_id and c.live = w.live and c.subscription_id = w.id and c.state = 'open';

-- A subscription that is paused, or may yet be kept, is charged by its card again.
create or replace view card_number_needed as
select merchant_id, card_id from subscription where date_next is not null or change_id is not null
 union
select a.merchant_id, a.card_id
  from payment_attempt a
  join checkout k on k.merchant_id = a.merchant_id and k.id = a.checkout_id
 where a.lookup_at is not null and a.state in ('processing', 'challenged') and k.package_version_id is not null
 union
select merchant_id, card_id from card_change where lookup_at is not null and state in ('processing', 'challenged')
 union
select s.merchant_id, s.card_id
  from saved_instrument s
  join payment_attempt a on a.merchant_id = s.merchant_id and a.id = s.attempt_id
 where s.removed_at is null and a.state in ('processing', 'challenged', 'approved');
