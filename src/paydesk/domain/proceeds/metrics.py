"""What an operator watches about acquirers' balances (Prometheus)."""

from prometheus_client import Counter, Gauge

READ_AGE = Gauge(
    "paydesk_balance_read_age_seconds",
    "How long ago the time is up to which an acquirer's balance, with its fees and payouts, was read",
    ["acquirer"],
    multiprocess_mode="mostrecent",
)
FINDINGS = Gauge(
    "paydesk_proceeds_findings",
    "Lines and payouts of an acquirer's balance that differ from our books, and that no operator has accepted",
    ["acquirer"],
    multiprocess_mode="mostrecent",
)
ENTERED = Counter("paydesk_balance_lines_total", "Movements of an acquirer's balance that were entered", ["acquirer"])
