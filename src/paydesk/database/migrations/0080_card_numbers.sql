-- A card number is kept only while a subscription will be charged by it.

create view card_number_spare as
select c.merchant_id, c.live, c.id
  from card c
 where c.number_sealed is not null
   and (c.refused_as <> ''
        or (not exists (select
                          from subscription s
                         where s.merchant_id = c.merchant_id and s.card_id = c.id and s.date_next is not null)
            and not exists (select
                              from payment_attempt a
                              join checkout k on k.merchant_id = a.merchant_id and k.id = a.checkout_id
                             where a.merchant_id = c.merchant_id and a.card_id = c.id
                               and a.state in ('processing', 'challenged') and k.package_version_id is not null)
            and not exists (select
                              from card_change h
                             where h.merchant_id = c.merchant_id and h.card_id = c.id
                               and h.state in ('processing', 'challenged'))));
comment on view card_number_spare is 'cards whose number is there and needed by nothing; empty, since statements erase what they end the need for';

-- What was kept before goes at once, in one statement that reads each table once. It locks no row that a payment writes.
update card c
   set number_sealed = null, erased_at = now()
  from card_number_spare spare
 where c.merchant_id = spare.merchant_id and c.id = spare.id;

-- Serves the walks over what is sealed; few cards are.
create index card_sealed on card (merchant_id, id) where number_sealed is not null;
