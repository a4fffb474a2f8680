"""What an operator watches about background loops (Prometheus)."""

from prometheus_client import Counter, Gauge

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
STARTS = Counter(
    "paydesk_process_starts_total", "How often `paydesk run` has started each of its processes", ["process"]
)
