-- name: find_charged_card(merchant_id, live, subscription_id)^
-- The card that a subscription of this revision is charged by, and whether its merchant may charge at all.
select s.revision, s.acquirer, s.network_reference, s.date_start, c.id as card_id, c.number_sealed, c.vault_key_id, c.exp_month,
       c.exp_year, c.holder, c.refused_as, c.stored_reference, s.live and m.suspended_at is not null as suspended
  from subscription s
  join merchant m on m.id = s.merchant_id
  join card c on c.merchant_id = s.merchant_id and c.live = s.live and c.id = s.card_id
 where s.merchant_id = :merchant_id and s.live = :live and s.id = :subscription_id;
