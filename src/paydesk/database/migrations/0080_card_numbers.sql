-- A card number is kept only while a subscription will be charged by it.

create view card_number_needed as
select merchant_id, card_id from subscription where date_next is not null
 union
select a.merchant_id, a.card_id
  from payment_attempt a
  join checkout k on k.merchant_id = a.merchant_id and k.id = a.checkout_id
 where a.lookup_at is not null and a.state in ('processing', 'challenged') and k.package_version_id is not null
 union
select merchant_id, card_id from card_change where lookup_at is not null and state in ('processing', 'challenged');
comment on view card_number_needed is 'cards that a subscription will be charged by, or may begin with once an outcome is known';

create view card_number_spare as
select c.merchant_id, c.live, c.id
  from card c
  left join card_number_needed n on n.merchant_id = c.merchant_id and n.card_id = c.id
 where c.number_sealed is not null and (n.card_id is null or c.refused_as <> '');
comment on view card_number_spare is 'cards whose number is there and needed by nothing; empty, since statements erase what they end the need for';

-- What was kept before goes at once, in one statement that reads each table once. It locks no row that a payment writes.
update card c
   set number_sealed = null, erased_at = now()
  from card_number_spare spare
 where c.merchant_id = spare.merchant_id and c.id = spare.id;

-- Serves the walks over what is sealed; few cards are.
create index card_sealed on card (merchant_id, id) where number_sealed is not null;
