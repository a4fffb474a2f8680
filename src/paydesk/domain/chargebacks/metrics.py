"""What an operator watches about disputes (Prometheus)."""

from prometheus_client import Gauge

READING_AGE = Gauge(
    "paydesk_disputes_read_age_seconds",
    "Seconds since an acquirer's disputes were last read to their end",
    ["acquirer"],
    multiprocess_mode="mostrecent",
)
