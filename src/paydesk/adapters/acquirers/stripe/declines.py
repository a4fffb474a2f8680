"""Stripe's reasons for a declined card, or direct debit, as ours.

Source: docs.stripe.com/declines/codes and docs.stripe.com/error-codes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from paydesk.adapters.acquirers.interface import DeclineReason

_BY_CODE: Final[Mapping[str, DeclineReason]] = {
    "insufficient_funds": DeclineReason.INSUFFICIENT_FUNDS,
    "card_velocity_exceeded": DeclineReason.INSUFFICIENT_FUNDS,
    "withdrawal_count_limit_exceeded": DeclineReason.INSUFFICIENT_FUNDS,
    "expired_card": DeclineReason.EXPIRED_CARD,
    "expired_payment_method": DeclineReason.EXPIRED_CARD,
    "invalid_expiry_month": DeclineReason.EXPIRED_CARD,
    "invalid_expiry_year": DeclineReason.EXPIRED_CARD,
    "incorrect_cvc": DeclineReason.WRONG_CVC,
    "invalid_cvc": DeclineReason.WRONG_CVC,
    "processing_error": DeclineReason.PROCESSING_ERROR,
    "issuer_not_available": DeclineReason.PROCESSING_ERROR,
    "reenter_transaction": DeclineReason.PROCESSING_ERROR,
    "try_again_later": DeclineReason.PROCESSING_ERROR,
    "authentication_required": DeclineReason.AUTHENTICATION_FAILED,
    "authentication_not_handled": DeclineReason.AUTHENTICATION_FAILED,
    "payment_intent_authentication_failure": DeclineReason.AUTHENTICATION_FAILED,
    "setup_intent_authentication_failure": DeclineReason.AUTHENTICATION_FAILED,
    "lost_card": DeclineReason.STOLEN_CARD,
    "stolen_card": DeclineReason.STOLEN_CARD,
    "pickup_card": DeclineReason.STOLEN_CARD,
    "account_closed": DeclineReason.CLOSED_ACCOUNT,
    "invalid_account": DeclineReason.CLOSED_ACCOUNT,
    "no_account": DeclineReason.CLOSED_ACCOUNT,
    "new_account_information_available": DeclineReason.CLOSED_ACCOUNT,
    "billing_invalid_mandate": DeclineReason.DECLINED,
    "card_declined": DeclineReason.DECLINED,
    "debit_not_authorized": DeclineReason.DECLINED,
    "india_recurring_payment_mandate_canceled": DeclineReason.DECLINED,
    "payment_intent_mandate_invalid": DeclineReason.DECLINED,
    "incorrect_number": DeclineReason.DECLINED,
    "invalid_number": DeclineReason.DECLINED,
}


def decline_reason(code: str | None, decline_code: str | None) -> DeclineReason:
    """Why a card was declined; the bank's own word goes before Stripe's,
    and what is unknown is just a no.
    """
    for word in (decline_code, code):
        reason = _BY_CODE.get(word or "", DeclineReason.DECLINED)
        if reason is not DeclineReason.DECLINED:
            return reason
    return DeclineReason.DECLINED


def is_about_the_card(code: str | None) -> bool:
    """Whether an error is the card's, not the request's."""
    return code in _BY_CODE
