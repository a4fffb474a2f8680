"""How a customer is told of a decline, at every door:
which reasons read alike, and which field can mend one.

A customer never reads more than an issuer would allow: a stolen card and a closed account look like
any other decline.
"""

from __future__ import annotations

from collections.abc import Mapping

from paydesk.adapters.acquirers.interface import DeclineReason

READS_AS: Mapping[str, DeclineReason] = {
    DeclineReason.STOLEN_CARD: DeclineReason.DECLINED,
    DeclineReason.CLOSED_ACCOUNT: DeclineReason.DECLINED,
    DeclineReason.REQUEST_REFUSED: DeclineReason.PROCESSING_ERROR,
    DeclineReason.NOT_REACHED: DeclineReason.PROCESSING_ERROR,
}
"""Reasons that are told in the words of another."""

FIELD_OF_DECLINE: dict[str, tuple[str, str]] = {
    DeclineReason.WRONG_CVC: ("cvc", "wrong"),
    DeclineReason.EXPIRED_CARD: ("expiry", "expired"),
}
"""Declines that one field can mend: the field and its error."""


def notice_for(code: str, notices: Mapping[str, str]) -> str:
    """The text for a decline, or for what else happened, among those of a door, to be translated.

    A reason for which a door has no words yet is told like one for which the bank gave none.
    """
    return notices.get(READS_AS.get(code, code)) or notices[DeclineReason.DECLINED]
