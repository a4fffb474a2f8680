"""What an operator watches about alarms (Prometheus)."""

from prometheus_client import Gauge

OPEN = Gauge(
    "paydesk_alarms_open",
    "Alarms that nobody has settled, by kind",
    ["kind"],
    multiprocess_mode="mostrecent",
)
