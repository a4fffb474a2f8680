-- name: add_item(merchant_id, live, subscription_id, revision, request_key, amount, description, asked_by, charge_digits, least_charge, now)$
-- An item and its amount in the balance stand or fall together, for the subscription as it was read and while no charge is
-- in flight. It comes with the charge of the next period, or, if that was tried already, of the one after it.
with was as materialized (
    select s.merchant_id, s.live, s.id, s.next_period,
           exists (select
                     from payment p
                    where p.merchant_id = s.merchant_id and p.live = s.live and p.subscription_id = s.id
                      and p.period_number = s.next_period) as is_tried
      from subscription s
     where s.merchant_id = :merchant_id and s.live = :live and s.id = :subscription_id and s.revision = :revision
       and s.state in ('Trial', 'Active') and s.charging_attempt_id is null
       for update of s
), moved as (
    update subscription s
       set balance = s.balance + :amount, charge_digits = :charge_digits, least_charge = :least_charge,
           revision = s.revision + 1
      from was
     where s.merchant_id = was.merchant_id and s.live = was.live and s.id = was.id and s.revision = :revision
 returning s.merchant_id, s.live, s.id, was.next_period + was.is_tried::integer as period_number
)
insert into subscription_item (merchant_id, live, subscription_id, request_key, period_number, amount, description,
                               asked_by, created_at)
select moved.merchant_id, moved.live, moved.id, :request_key, moved.period_number, :amount, :description, :asked_by, :now
  from moved
returning id;

-- name: take_back_item(merchant_id, live, subscription_id, revision, id, now)$
-- An item that no charge has been tried with leaves the balance.
with was as materialized (
    select s.merchant_id, s.live, s.id, i.id as item_id, i.amount
      from subscription s
      join subscription_item i
        on i.merchant_id = s.merchant_id and i.live = s.live and i.subscription_id = s.id and i.id = :id
     where s.merchant_id = :merchant_id and s.live = :live and s.id = :subscription_id and s.revision = :revision
       and s.state in ('Trial', 'Active') and s.charging_attempt_id is null
       and i.taken_back_at is null and i.charged_attempt_id is null
       and not exists (select
                         from payment p
                        where p.merchant_id = i.merchant_id and p.live = i.live and p.subscription_id = i.subscription_id
                          and p.period_number = i.period_number)
       for update of s
), moved as (
    update subscription s
       set balance = s.balance - was.amount, revision = s.revision + 1
      from was
     where s.merchant_id = was.merchant_id and s.live = was.live and s.id = was.id and s.revision = :revision
 returning s.merchant_id, s.live, was.item_id
)
update subscription_item i
   set taken_back_at = :now
  from moved
 where i.merchant_id = moved.merchant_id and i.live = moved.live and i.id = moved.item_id
returning i.id;

-- name: list_items(merchant_id, live, subscription_id, id, request_key, amount, description, most)
-- A subscription's items, all or those of one amount and description, newest first, each with the payment whose charge
-- has it, if one was tried.
select i.id, i.subscription_id, i.amount, i.description, i.created_at, i.taken_back_at,
       coalesce(d.id, p.id) as payment_id,
       coalesce(d.paid_at, p.paid_at) is not null as paid, s.state as subscription_state
  from subscription_item i
  join subscription s on s.merchant_id = i.merchant_id and s.live = i.live and s.id = i.subscription_id
  left join payment p
    on p.merchant_id = i.merchant_id and p.live = i.live and p.subscription_id = i.subscription_id
   and p.period_number = i.period_number and i.charged_attempt_id is null and i.taken_back_at is null
  left join payment_attempt a on a.merchant_id = i.merchant_id and a.live = i.live and a.id = i.charged_attempt_id
  left join payment d on d.merchant_id = a.merchant_id and d.live = a.live and d.id = a.payment_id
 where i.merchant_id = :merchant_id and i.live = :live
   and (i.subscription_id = :subscription_id or i.request_key = :request_key::text)
   and coalesce(i.id = :id::bigint, true)
   and coalesce(i.amount = :amount::numeric and i.description = :description::text, true)
 order by i.id desc
 limit :most;
