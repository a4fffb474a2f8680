-- name: cards_of_last4(merchant_id, live, last4, most)$
-- How many cards end in these digits, counted no further than :most.
select count(*)
  from (select from card where merchant_id = :merchant_id and live = :live and last4 = :last4 limit :most) found;

-- name: of_text(merchant_id, live, text, email, payment_id, last4, states, since, until, before_at, before_id, most)
-- What one box may mean: an order reference, an e-mail address, a payment's id, a card's last four digits (null: not that).
select *
  from payment_whole
 where merchant_id = :merchant_id and live = :live
   and id = any(array(
       select payments_of_reference(:merchant_id, :live, :text)
        union
       select id from payment where merchant_id = :merchant_id and live = :live and id = :payment_id::bigint
        union
       select payments_of_email(:merchant_id, :live, lower(:email::text))
        union
       select payments_of_last4(:merchant_id, :live, :last4::text)))
   and (:states::text[] is null or state = any(:states::text[]))
   and created_at >= :since and created_at < :until and (created_at, id) < (:before_at, :before_id)
 order by created_at desc, id desc
 limit :most;

-- name: of_common_card(merchant_id, live, last4, states, since, until, before_at, before_id, most)
-- Where very many cards end in the same digits (test cards do) the newest payments are looked through instead. (What
-- coalesce hides the planner can't guess, so that the index by time leads.)
select w.*
  from (
      select p.merchant_id, p.live, p.id
        from payment p
        join card c on c.merchant_id = p.merchant_id and c.live = p.live and c.id = p.card_id
       where p.merchant_id = :merchant_id and p.live = :live and coalesce(c.last4 = :last4, false)
         and p.created_at >= :since and p.created_at < :until and (p.created_at, p.id) < (:before_at, :before_id)
         and (:states::text[] is null or p.state = any(:states::text[]))
       order by p.created_at desc, p.id desc
       limit :most
  ) page
  join payment_whole w on w.merchant_id = page.merchant_id and w.live = page.live and w.id = page.id
 order by w.created_at desc, w.id desc;

-- name: of_common_card_in_states(merchant_id, live, last4, states, since, until, before_at, before_id, most)
-- The same for states that are not the usual one: the newest of each come from the index by state, those that are
-- processing by their attempts (as in_states).
select w.*
  from (
      select one.*
        from unnest(:states::text[]) as asked (state)
       cross join lateral (
           select p.merchant_id, p.live, p.id, p.created_at
             from payment p
             join card c on c.merchant_id = p.merchant_id and c.live = p.live and c.id = p.card_id
            where p.merchant_id = :merchant_id and p.live = :live and p.rare_state = asked.state
              and p.created_at >= :since and p.created_at < :until and (p.created_at, p.id) < (:before_at, :before_id)
              and coalesce(c.last4 = :last4, false)
            order by p.created_at desc, p.id desc
            limit :most
       ) one
       union all
      select p.merchant_id, p.live, p.id, p.created_at
        from payment_attempt a
        join payment p on p.merchant_id = a.merchant_id and p.live = a.live and p.id = a.payment_id and p.attempt_id = a.id
        join card c on c.merchant_id = p.merchant_id and c.live = p.live and c.id = p.card_id
       where 'processing' = any(:states::text[])
         and a.merchant_id = :merchant_id and a.live = :live and a.lookup_at is not null and p.state = 'processing'
         and p.created_at >= :since and p.created_at < :until and (p.created_at, p.id) < (:before_at, :before_id)
         and c.last4 = :last4
       order by created_at desc, id desc
       limit :most
  ) page
  join payment_whole w on w.merchant_id = page.merchant_id and w.live = page.live and w.id = page.id
 order by w.created_at desc, w.id desc;
