"""What an operator watches about accounts at acquirers (Prometheus)."""

from prometheus_client import Gauge

OUT = Gauge(
    "paydesk_acquirer_out_of_turn",
    "1 while an account fails, and is asked for new payments only where no other may be",
    ["acquirer"],
    multiprocess_mode="mostrecent",
)
