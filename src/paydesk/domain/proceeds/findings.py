"""What may differ between an acquirer's balance and our books, and what a person can do about it.
A new kind gets its words here, and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from paydesk.core.wording import noted


class FindingKind(StrEnum):
    """What differs; `ADVICE` says what to do."""

    NOT_TOLD = "not_told"
    NOT_PAID_OUT = "not_paid_out"
    UNKNOWN_HERE = "unknown_here"
    STATE_DIFFERS = "state_differs"
    AMOUNT_DIFFERS = "amount_differs"
    CURRENCY_DIFFERS = "currency_differs"
    FEE_DIFFERS = "fee_differs"
    CORRECTED = "corrected"
    UNEXPLAINED = "unexplained"
    SUM_DIFFERS = "sum_differs"
    PAYOUT_CURRENCY = "payout_currency"
    PAYOUT_FAILED = "payout_failed"


ADVICE: dict[FindingKind, str] = {
    FindingKind.NOT_TOLD: noted(
        "Our books have taken this payment, and the acquirer's balance does not have it. Look for it in the "
        "acquirer's pages by its key; ask the acquirer where the money is."
    ),
    FindingKind.NOT_PAID_OUT: noted(
        "The acquirer has the money of this payment, and has paid out later ones. Ask it why this one is held back."
    ),
    FindingKind.UNKNOWN_HERE: noted(
        "The acquirer moved money that our books don't know. Run `paydesk reconcile --fix`: it adopts what the "
        "database forgot. What other software on the account made can be accepted."
    ),
    FindingKind.STATE_DIFFERS: noted(
        "The acquirer moved money for something that did not come to that in our books. Compare both, and collect or "
        "give back what differs."
    ),
    FindingKind.AMOUNT_DIFFERS: noted("Compare with the acquirer's pages, and have it correct its line, or ours."),
    FindingKind.CURRENCY_DIFFERS: noted(
        "The money is of another currency than our books say. Compare with the acquirer's pages."
    ),
    FindingKind.FEE_DIFFERS: noted(
        "The fee is not that of the contract which was set for this account. Ask the acquirer to correct it, or set "
        "what holds now with `paydesk acquirer fee`."
    ),
    FindingKind.CORRECTED: noted(
        "The acquirer tells a line otherwise than it did before. What was told first stays in the books: ask what "
        "holds, and accept it once you know."
    ),
    FindingKind.UNEXPLAINED: noted(
        "The acquirer moved money for something that is no payment, refund, chargeback, fee or payout. Look up what "
        "it is in its pages, and accept it."
    ),
    FindingKind.SUM_DIFFERS: noted(
        "The payout is not the sum of its lines. Compare the lines with the acquirer's own report of this payout, and"
        " ask for what is missing."
    ),
    FindingKind.PAYOUT_CURRENCY: noted(
        "A payout has lines of another currency. Compare with the acquirer's report of it."
    ),
    FindingKind.PAYOUT_FAILED: noted(
        "The operator's bank did not take the payout; the money is the acquirer's again. Check the bank account that "
        "it has, and that a later payout has it."
    ),
}
"""What to do about each, for the operator's page and the command."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that differs; `reason` says what, in words.

    `subject` is the line, the payout, or the key of a payment that it is about, and `payout` the
    payout that has it, None if none does yet.
    """

    kind: FindingKind
    subject: str
    reason: str
    payout: str | None = None
    merchant_id: int | None = None
    live: bool | None = None
    payment_id: int | None = None

    @property
    def advice(self) -> str:
        """What to do about it."""
        return ADVICE[self.kind]


def subject_of(kind: FindingKind, subject: str, acquirer: str) -> str:
    """What a finding is called in the operator's list of alarms."""
    return f"{kind} {subject} at {acquirer}"
