"""Mollie's reasons for a payment that failed as ours.

Source: docs.mollie.com/reference/get-payment, `details.failureReason` of cards, and of debits
    `details.bankReasonCode`, a word of the banks' own (ISO 20022).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from paydesk.adapters.acquirers.interface import DeclineReason

_BY_WORD: Final[Mapping[str, DeclineReason]] = {
    "AC04": DeclineReason.CLOSED_ACCOUNT,
    "AM04": DeclineReason.INSUFFICIENT_FUNDS,
    "authentication_abandoned": DeclineReason.AUTHENTICATION_FAILED,
    "authentication_failed": DeclineReason.AUTHENTICATION_FAILED,
    "authentication_required": DeclineReason.AUTHENTICATION_FAILED,
    "authentication_unavailable_acs": DeclineReason.AUTHENTICATION_FAILED,
    "card_expired": DeclineReason.EXPIRED_CARD,
    "inactive_card": DeclineReason.CLOSED_ACCOUNT,
    "insufficient_funds": DeclineReason.INSUFFICIENT_FUNDS,
    "invalid_cvv": DeclineReason.WRONG_CVC,
    "possible_fraud": DeclineReason.STOLEN_CARD,
}


def decline_reason(word: str | None) -> DeclineReason:
    """Why a payment failed; what is unknown is just a no."""
    return _BY_WORD.get(word or "", DeclineReason.DECLINED)
