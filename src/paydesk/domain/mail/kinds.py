"""The kinds of mails, by which their texts are found."""

from __future__ import annotations

from enum import StrEnum


class MailKind(StrEnum):
    """What a mail tells."""

    receipt = "receipt"
    subscription_started = "subscription_started"
    """Is the receipt of the subscription's first payment, too."""
    renewal_receipt = "renewal_receipt"
    renewal_failed = "renewal_failed"
    card_expires = "card_expires"
    """The card of a subscription expires before it is charged again and again."""
    charge_ahead = "charge_ahead"
    """What a subscription is charged soon, where its merchant announces it."""
    card_wanted = "card_wanted"
    """A trial that began without a card ends soon, if none is given."""
    subscription_stopped = "subscription_stopped"
    subscription_cancelled = "subscription_cancelled"
    payment_failed = "payment_failed"
    """A payment by a slow method came to nothing."""
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
        MailKind.receipt,
        MailKind.subscription_started,
        MailKind.renewal_receipt,
        MailKind.renewal_failed,
        MailKind.card_expires,
        MailKind.charge_ahead,
        MailKind.card_wanted,
        MailKind.subscription_stopped,
        MailKind.subscription_cancelled,
        MailKind.payment_failed,
        MailKind.refund,
        MailKind.shipment,
        MailKind.shopper_code,
    }
)
"""What a merchant's customers get, in the merchant's name."""

MERCHANT_KINDS = frozenset(
    {
        MailKind.void_reminder,
        MailKind.chargeback_alert,
        MailKind.failing_endpoint,
        MailKind.authorization_voided,
        MailKind.profile_accepted,
        MailKind.profile_refused,
        MailKind.profile_change_accepted,
        MailKind.profile_change_refused,
        MailKind.merchant_suspended,
        MailKind.merchant_restored,
    }
)
"""What a merchant is told about its own business; the rest goes to people who log in."""

LINK_KINDS = frozenset({MailKind.invitation, MailKind.confirm_email, MailKind.reset_password})
"""What holds a link that works once; its token is forgotten as soon as the mail is out
or given up."""
