"""What an operator watches about background loops (Prometheus)."""

from prometheus_client import Counter, Gauge, Histogram

LAST_TURN = Gauge(
    "paydesk_loop_last_turn_timestamp_seconds",
    "When each background loop ended its last turn, in seconds since 1970",
    ["loop"],
    multiprocess_mode="mostrecent",
)
FAILURES = Counter("paydesk_loop_failures_total", "Turns of background loops that failed", ["loop"])
HEARTBEAT = Gauge(
    "paydesk_heartbeat_timestamp_seconds",
    "When a process's event loop was last seen to go round, in seconds since 1970; a thread beside the loop says so",
    ["process"],
    multiprocess_mode="liveall",
)
LAG = Histogram(
    "paydesk_event_loop_lag_seconds",
    "How late a process's event loop comes to what it is asked for, asked each second from a thread beside it",
    ["process"],
    buckets=(0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30),
)
STARTS = Counter(
    "paydesk_process_starts_total", "How often `paydesk run` has started each of its processes", ["process"]
)
