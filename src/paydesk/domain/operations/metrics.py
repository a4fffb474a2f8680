"""What an operator watches about what is due (Prometheus)."""

from prometheus_client import Counter, Gauge

DUE = Gauge(
    "paydesk_queue_due",
    "What has to be done by now, by queue: renewals, outcomes, movements, shipping, settlements, mails, pingbacks",
    ["queue"],
    multiprocess_mode="mostrecent",
)
OLDEST = Gauge(
    "paydesk_queue_oldest_seconds",
    "For how long the oldest of a queue has been due; 0 if nothing is",
    ["queue"],
    multiprocess_mode="mostrecent",
)
IN_HAND = Gauge(
    "paydesk_queue_in_hand",
    "What of a queue is in a worker's hands",
    ["queue"],
    multiprocess_mode="mostrecent",
)
FAILING = Gauge(
    "paydesk_subscriptions_failing",
    "Running live subscriptions whose last charge failed",
    multiprocess_mode="mostrecent",
)
HALF_MOVED = Gauge(
    "paydesk_merchants_half_moved",
    "Merchants whose move to another cell was left half-way, by how they stand here: closed, arriving, moved",
    ["state"],
    multiprocess_mode="mostrecent",
)
HELD = Gauge(
    "paydesk_held",
    "1 while this process begins nothing that moves money, since the database may have forgotten some",
    multiprocess_mode="livemax",
)
RECONCILED_AGE = Gauge(
    "paydesk_reconciled_age_seconds",
    "How long ago the time is up to which an acquirer's own list was compared with our books",
    ["acquirer"],
    multiprocess_mode="mostrecent",
)
RECONCILIATION = Gauge(
    "paydesk_reconciliation_differences",
    "Purchases and refunds of which an acquirer's own list said other than our books when last compared",
    ["acquirer"],
    multiprocess_mode="mostrecent",
)
ADOPTED = Counter(
    "paydesk_adopted_total",
    "Purchases, captures, voids and refunds that an acquirer knew and our books had forgotten, written down since",
    ["acquirer"],
)
