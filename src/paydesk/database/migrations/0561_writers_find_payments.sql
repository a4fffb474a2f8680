-- once no older code runs
-- Who writes a payment's state or when its money is due says by what it is found; this was for code of before. What a
-- trigger asks is read and made ready anew by each statement, which a single payment would notice.
drop trigger payment_is_found on payment;
drop trigger payment_is_found_again on payment;
drop function payment_is_found;
