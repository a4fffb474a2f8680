-- oldest code: 150
-- Whoever refuses for a fence says why in the same words. When to come back is told beside them, by Retry-After: so they
-- name no time of their own.
create function fence_in_words(fence merchant_fence) returns text
    language sql stable
    return case when fence.moved_at is not null
                then format('this account has moved to cell %s: nothing was done here; ask there', fence.other_cell)
                else 'this account is being moved to another server: nothing was done; try again in a moment' end;
comment on function fence_in_words is 'why nothing of a merchant is written, for whoever asked for it';
