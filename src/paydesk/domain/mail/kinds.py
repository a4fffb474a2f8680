"""The kinds of mails, by which their texts are found."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """What a mail tells."""

    receipt = "receipt"
    subscription_started = "subscription_started"
    """Is the receipt of the subscription's first payment, too."""
    renewal_receipt = "renewal_receipt"
    renewal_failed = "renewal_failed"
    subscription_stopped = "subscription_stopped"
    subscription_cancelled = "subscription_cancelled"
    refund = "refund"
    shipment = "shipment"
    shopper_code = "shopper_code"
    """Holds the code by which a shop's customer proves this address."""
    void_reminder = "void_reminder"
    chargeback_alert = "chargeback_alert"
    failing_endpoint = "failing_endpoint"
    authorization_voided = "authorization_voided"
    profile_accepted = "profile_accepted"
    profile_refused = "profile_refused"
    profile_change_accepted = "profile_change_accepted"
    profile_change_refused = "profile_change_refused"
    merchant_suspended = "merchant_suspended"
    merchant_restored = "merchant_restored"
    security_notice = "security_notice"
    invitation = "invitation"
    confirm_email = "confirm_email"
    reset_password = "reset_password"  # noqa: S105 (a name)


CUSTOMER_KINDS = frozenset(
    {
        Kind.receipt,
        Kind.subscription_started,
        Kind.renewal_receipt,
        Kind.renewal_failed,
        Kind.subscription_stopped,
        Kind.subscription_cancelled,
        Kind.refund,
        Kind.shipment,
        Kind.shopper_code,
    }
)
"""What a merchant's customers get, in the merchant's name."""

MERCHANT_KINDS = frozenset(
    {
        Kind.void_reminder,
        Kind.chargeback_alert,
        Kind.failing_endpoint,
        Kind.authorization_voided,
        Kind.profile_accepted,
        Kind.profile_refused,
        Kind.profile_change_accepted,
        Kind.profile_change_refused,
        Kind.merchant_suspended,
        Kind.merchant_restored,
    }
)
"""What a merchant is told about its own business; the rest goes to people who log in."""

LINK_KINDS = frozenset({Kind.invitation, Kind.confirm_email, Kind.reset_password})
"""What holds a link that works once; its token is forgotten as soon as the mail is out
or given up."""
