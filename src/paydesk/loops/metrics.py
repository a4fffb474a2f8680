"""What an operator watches about background loops (Prometheus)."""

from prometheus_client import Counter, Gauge

LAST_TURN = Gauge(
    "paydesk_loop_last_turn_timestamp_seconds",
    "When each background loop ended its last turn, in seconds since 1970",
    ["loop"],
    multiprocess_mode="mostrecent",
)
FAILURES = Counter("paydesk_loop_failures_total", "Turns of background loops that failed", ["loop"])
