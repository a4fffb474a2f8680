"""What an operator watches about payments (Prometheus)."""

from prometheus_client import Counter, Gauge

PAYMENTS = Counter("paydesk_payments_total", "Attempts to pay that ended, by outcome", ["outcome"])
UNKNOWN = Counter("paydesk_payments_unknown_total", "Acquirer calls that ended without a trustworthy answer")
LATE_APPROVALS = Counter("paydesk_late_approvals_total", "Approvals that turned up after we gave up, and were voided")
LOOKUPS = Counter("paydesk_lookups_total", "Questions that the janitor asked acquirers, by finding", ["finding"])
OPEN_OUTCOMES = Gauge(
    "paydesk_unknown_outcomes",
    "Payments, captures, voids and refunds older than a minute whose outcome is open",
    multiprocess_mode="mostrecent",
)
PENDING = Gauge(
    "paydesk_pending_payments",
    "Payments by slow methods whose money is on its way",
    ["mode"],
    multiprocess_mode="mostrecent",
)
PENDING_AGE = Gauge(
    "paydesk_pending_payment_age_seconds",
    "Seconds since the oldest payment began whose money is on its way, 0 if there is none",
    ["mode"],
    multiprocess_mode="mostrecent",
)
REFUNDS_READ_AGE = Gauge(
    "paydesk_failed_refunds_read_age_seconds",
    "Seconds since an acquirer's failed refunds were last read to their end",
    ["acquirer"],
    multiprocess_mode="mostrecent",
)
GUARDED = Counter(
    "paydesk_card_guard_refusals_total", "Tries with cards that the guard against card testing refused", ["guard"]
)
GUARD_STEPS = Counter(
    "paydesk_card_guard_steps_total", "Merchants that were guarded because most of their tries are declined", ["step"]
)
FORMS = Counter("paydesk_checkout_forms_total", "Checkout forms by the status of the answer", ["status"])
