"""One mail of every kind, with all that it may show, for tests of what people read."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from paydesk.domain.mail.kinds import CUSTOMER_KINDS, MERCHANT_KINDS, MailKind
from paydesk.domain.mail.sending import DueMail
from paydesk.web.mails.writing import Addresses

ADDRESSES = Addresses("https://pay.example", "https://pay.example/sandbox")
NOW = datetime(2030, 3, 8, 12, tzinfo=UTC)
LATER = "2030-04-08T12:00:00+00:00"

_CARD = {"brand": "visa", "last4": "4242"}
_MONEY = {"amount": "1234.5", "currency": "USD"}
_HELD = {"merchant_id": 7, "merchant_order_id": "1701", **_MONEY, "payment_id": 13330}
_ORDER = {"merchant_order_id": "1701", "description": "Blorp", "name": "Zaphod"}
_SUBSCRIPTION = {**_ORDER, "package": "Qvorp", "portal_token": "t1-abc", "date_next": LATER}
_PAID = {**_MONEY, **_CARD, "payment_id": 13330, "paid_at": NOW.isoformat(), "reserved": False}

FACTS: dict[MailKind, dict[str, Any]] = {
    MailKind.receipt: {**_ORDER, **_PAID},
    MailKind.subscription_started: {**_SUBSCRIPTION, **_PAID, "terms_agreed": "Vorp 12"},
    MailKind.renewal_receipt: {**_SUBSCRIPTION, **_PAID},
    MailKind.renewal_failed: {**_SUBSCRIPTION, **_MONEY, **_CARD, "paying": "2/t1-def"},
    MailKind.card_expires: {**_SUBSCRIPTION, **_CARD, "expires": "2030-04-01"},
    MailKind.charge_ahead: {**_SUBSCRIPTION, **_MONEY, **_CARD},
    MailKind.card_wanted: {**_SUBSCRIPTION, **_MONEY, "ends_at": LATER, "terms_agreed": "Vorp 12"},
    MailKind.subscription_stopped: _SUBSCRIPTION,
    MailKind.subscription_cancelled: _SUBSCRIPTION,
    MailKind.payment_failed: {**_ORDER, **_MONEY},
    MailKind.refund: {**_ORDER, **_MONEY, **_CARD},
    MailKind.shipment: {
        **_ORDER,
        "carrier": "Zoomr",
        "tracking_id": "Z1",
        "tracking_url": "https://zoomr.example/Z1",
    },
    MailKind.shopper_code: {"token": "042137", "minutes": 10},
    MailKind.void_reminder: {
        "merchant_id": 7,
        "merchant_order_id": "1701",
        **_MONEY,
        "ship_by": LATER,
        "payment_id": 13330,
    },
    MailKind.chargeback_alert: {
        "merchant_id": 7,
        "merchant_order_id": "1701",
        **_MONEY,
        "reason": "10.4",
        "payment_id": 13330,
        "chargeback_id": 41,
    },
    MailKind.failing_endpoint: {
        "merchant_id": 7,
        "url": "https://zyx.example/pb",
        "attempts": 4,
        "since": NOW.isoformat(),
        "status": 500,
        "error": "",
    },
    MailKind.authorization_voided: _HELD,
    MailKind.profile_accepted: {"merchant_id": 7, "name": "Zaphod"},
    MailKind.profile_refused: {"merchant_id": 7, "name": "Zaphod", "reason": "Blorp"},
    MailKind.profile_change_accepted: {"merchant_id": 7, "name": "Zaphod", "payouts_from": "2030-03-04T05:06:07+00:00"},
    MailKind.profile_change_refused: {"merchant_id": 7, "name": "Zaphod", "reason": "Blorp"},
    MailKind.merchant_suspended: {"merchant_id": 7, "name": "Zaphod", "reason": "Blorp"},
    MailKind.merchant_restored: {"merchant_id": 7, "name": "Zaphod"},
    MailKind.security_notice: {
        "name": "Zaphod",
        "what": "password_changed",
        "at": NOW.isoformat(),
        "client_address": "192.0.2.7",
        "left": 3,
    },
    MailKind.invitation: {"merchant_name": "Zyx", "role": "support", "invited_by": "Trillian", "token": "tok-en"},
    MailKind.confirm_email: {"name": "Zaphod", "token": "tok-en"},
    MailKind.reset_password: {"name": "Zaphod", "token": "tok-en", "client_address": "192.0.2.7"},
}


def mail_of(kind: MailKind, language: str = "en", **changes: Any) -> DueMail:
    """A mail that is due; `facts` given are put over the usual ones."""
    facts = {**FACTS[kind], **changes.pop("facts", {})}
    of_merchant = kind in CUSTOMER_KINDS | MERCHANT_KINDS
    usual: dict[str, Any] = {
        "merchant_id": 7 if of_merchant else 0,
        "live": True if of_merchant else None,
        "id": 99,
        "kind": str(kind),
        "recipient": "zaphod@people.example",
        "language": language,
        "facts": facts,
        "attempts": 1,
        "created_at": NOW,
        "merchant_name": "Zyx" if of_merchant else "",
        "merchant_email": "owner@zyx.example" if of_merchant else "",
        "time_zone": "UTC",
    }
    return DueMail(**{**usual, **changes})
