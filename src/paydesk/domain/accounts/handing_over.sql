-- name: use_hand_over(nonce, good_until)$
-- Of several that bring a token at once, or again, one gets a row.
insert into hand_over_used (nonce, good_until) values (:nonce, :good_until) on conflict do nothing returning nonce;

-- name: forget_hand_overs(before)!
delete from hand_over_used where good_until < :before;
