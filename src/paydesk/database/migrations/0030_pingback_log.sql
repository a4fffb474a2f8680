-- What the log of pingbacks is filtered by. Neither index is written when a payment is told and acknowledged, which is
-- what nearly every pingback is: those are found by time.

-- Serves the list of one event other than `payment`.
create index pingback_by_event on pingback (merchant_id, live, event, created_at, id) where event <> 'payment';
-- Serves the list of one event that failed or waits for a URL, and sending again all of one event that failed.
create index pingback_failed_by_event on pingback (merchant_id, live, state, event, created_at, id)
    where state in ('waiting', 'exhausted');
