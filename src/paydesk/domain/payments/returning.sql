-- name: lead_back(merchant_id, live, id, now)$
-- Only the first answer gets a row: whoever has the link later is not led on unasked. (The answer to paying is written
-- down by record_approvals itself.)
update checkout
   set led_back_at = :now
 where merchant_id = :merchant_id and live = :live and id = :id and led_back_at is null
returning id;
