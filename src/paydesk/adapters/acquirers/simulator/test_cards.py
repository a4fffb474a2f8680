"""The test cards, and what the simulated bank does with each;
the checkout page and `paydesk run` show this list.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from paydesk.adapters.acquirers.interface import DeclineReason
from paydesk.core.cards import Brand, detect_brand

APPROVED: Final = "approved"
CHALLENGED: Final = "challenged"


@dataclass(frozen=True, slots=True)
class SampleCard:
    """A test card: any expiry date to come and any security code are right.

    `outcome` is one line for people. `at_checkout` and `later` (charges of the stored card) are
    "approved", "challenged" or a decline reason. `answer_lost`: the bank decides, but its answer
    never arrives. `disputed`: its customer wants the money back as soon as it is taken.
    """

    number: str
    outcome: str
    at_checkout: str = APPROVED
    later: str = APPROVED
    answer_lost: bool = False
    disputed: bool = False

    @property
    def brand(self) -> Brand:
        """The brand that its number belongs to."""
        return detect_brand(self.number)


def _declined(number: str, outcome: str, reason: DeclineReason) -> SampleCard:
    """A card that is declined for one reason, whoever charges it."""
    return SampleCard(number, outcome, at_checkout=reason, later=reason)


TEST_CARDS: Final[tuple[SampleCard, ...]] = (
    SampleCard("4242424242424242", "Approved"),
    SampleCard("5555555555554444", "Approved"),
    SampleCard("378282246310005", "Approved"),
    SampleCard("4000000000003220", "Asks for 3-D Secure", at_checkout=CHALLENGED),
    _declined("4000000000000002", "Declined", DeclineReason.DECLINED),
    _declined("4000000000009995", "Declined: insufficient funds", DeclineReason.INSUFFICIENT_FUNDS),
    _declined("4000000000000069", "Declined: expired card", DeclineReason.EXPIRED_CARD),
    _declined("4000000000000127", "Declined: wrong CVC", DeclineReason.WRONG_CVC),
    _declined("4000000000000119", "Declined: processing error", DeclineReason.PROCESSING_ERROR),
    SampleCard("4000000000000341", "Approved, but every later charge is declined", later=DeclineReason.DECLINED),
    SampleCard("4000000000000259", "Approved, and charged back as soon as it is captured", disputed=True),
    SampleCard("4000000000009987", "Approved, but the bank's answer is lost", answer_lost=True),
)

BY_NUMBER: Final[Mapping[str, SampleCard]] = {card.number: card for card in TEST_CARDS}

BY_LAST4: Final[Mapping[str, SampleCard]] = {card.number[-4:]: card for card in TEST_CARDS}
"""Enough to know a kept card by: no two test cards end alike, and no other number is ever kept."""

DISPUTED_LAST4: Final = frozenset(card.number[-4:] for card in TEST_CARDS if card.disputed)
"""Enough to know an approved card by: no two test cards end alike,
and any other number is declined."""

ANY_OTHER: Final = _declined("", "Declined", DeclineReason.DECLINED)
"""What happens to a number that is not a test card."""

ON_ITS_WAY: Final = "on_its_way"
"""A direct debit that arrives in some days."""
NOT_COMING: Final = "not_coming"
"""A direct debit that its account does not pay, in some days."""

FROM_BANK: Final = SampleCard("", "Approved")
"""What happens to a later charge of a bank account that was kept on a page."""
