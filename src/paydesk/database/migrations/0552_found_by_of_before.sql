-- oldest code: 150
-- in batches of 2000: payment (merchant_id, id)
-- The payments from before that are in few states, or whose money is still to move on.
update payment p
   set rare_state = rare_state(p.state), funds_look_at = p.funds_due_at
  from batch b
 where p.merchant_id = b.merchant_id and p.id = b.id
   and (p.rare_state is distinct from rare_state(p.state)
        or p.funds_due_at is not null and coalesce(p.funds_look_at > p.funds_due_at, true));
