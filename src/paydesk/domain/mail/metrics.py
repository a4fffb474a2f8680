"""What an operator watches about mails (Prometheus)."""

from prometheus_client import Counter

MAILS = Counter(
    "paydesk_mails_total", "Tries to send a mail, by outcome (sent, delayed, failed, withheld, capped)", ["outcome"]
)
