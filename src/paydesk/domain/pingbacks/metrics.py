"""What an operator watches about pingbacks (Prometheus)."""

from prometheus_client import Counter, Gauge, Histogram

ATTEMPTS = Counter(
    "paydesk_pingback_attempts_total", "Attempts, by what became of the pingback (due: to be sent again)", ["outcome"]
)
CLAIMED = Counter("paydesk_pingbacks_claimed_total", "Pingbacks taken by a sender")
LAG = Histogram(
    "paydesk_pingback_lag_seconds",
    "From when a pingback was due to when it was sent",
    buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800),
)
DURATION = Histogram(
    "paydesk_pingback_duration_seconds",
    "How long merchants take to answer",
    buckets=(0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 20),
)
IN_HAND = Gauge("paydesk_pingbacks_in_hand", "Pingbacks claimed and not yet recorded", multiprocess_mode="livesum")
BACKLOG = Gauge(
    "paydesk_pingbacks_backlog", "Pingbacks that should have been sent by now", multiprocess_mode="mostrecent"
)
OLDEST = Gauge(
    "paydesk_pingback_oldest_seconds", "How long the oldest of the backlog has been due", multiprocess_mode="mostrecent"
)
