"""The points about cards whose numbers are sent."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Final

from paydesk.adapters.acquirers.interface import (
    AcquirerRefused,
    Approved,
    Challenged,
    Declined,
    DeclineReason,
    KeyUsed,
    Voided,
)
from paydesk.adapters.acquirers.purchases import Purchase
from paydesk.adapters.acquirers.verifying.points import Case, Skipped, named, refusal_of, require
from paydesk.adapters.acquirers.verifying.trial import AMOUNT, ASKS, DECLINED, PART, Trial


class CardPoints:
    """Charges, refunds, holds and challenges of test cards."""

    def __init__(self, trial: Trial) -> None:
        self._trial: Final = trial
        self._purchase: Purchase | None = None

    def cases(self) -> list[Case]:
        """What is tried, in this order."""
        return [
            ("charge a card", "approved, and found by its key", self._charge),
            ("the same charge again", "the first answer", self._charge_again),
            ("another amount under its key", "refused", self._charge_other),
            ("refund a part, twice under one key", "given back once", self._refund_of_card),
            ("refund more than is left", "refused", self._refund_too_much),
            ("charge a card that is declined", "declined", self._decline),
            ("charge after the time was over", "declined, too late", self._late),
            ("a card that asks its customer", "an address, and no money once it is ended", self._challenge),
            ("hold, and capture a part", "captured once", self._hold_and_capture),
            ("hold, and let go", "nothing is held", self._hold_and_void),
        ]

    async def _charge(self) -> str:
        self._purchase = self._trial.purchase()
        approved = await self._trial.approved(self._purchase)
        found = await self._trial.acquirer.find(self._purchase.key)
        require(isinstance(found, Approved) and found.reference == approved.reference, f"found as {named(found)}")
        return f"approved as {approved.reference}"

    async def _charge_again(self) -> str:
        again = await self._trial.again(self._first())
        reference = self._trial.taken[self._first().key]
        require(isinstance(again, Approved) and again.reference == reference, named(again))
        return f"{reference} again"

    async def _charge_other(self) -> str:
        other = replace(self._first(), amount=AMOUNT + PART)
        return await refusal_of(self._trial.again(other), KeyUsed)

    async def _refund_of_card(self) -> str:
        return await self._trial.refund(self._first().key)

    async def _refund_too_much(self) -> str:
        first = self._first()
        reference = self._trial.taken[first.key]
        asked = self._trial.acquirer.refund(self._trial.key(), reference, AMOUNT * 2, self._trial.currency)
        return await refusal_of(asked, AcquirerRefused)

    async def _decline(self) -> str:
        answer = await self._trial.authorize(self._trial.purchase(DECLINED))
        require(isinstance(answer, Declined), named(answer))
        return named(answer)

    async def _late(self) -> str:
        answer = await self._trial.authorize(
            replace(self._trial.purchase(), not_after=self._trial.now() - timedelta(minutes=5))
        )
        require(answer == Declined(DeclineReason.TOO_LATE), named(answer))
        return named(answer)

    async def _challenge(self) -> str:
        purchase = self._trial.purchase(ASKS)
        answer = await self._trial.authorize(purchase)
        require(isinstance(answer, Challenged) and answer.url.startswith("http"), named(answer))
        ended = await self._trial.acquirer.end_challenge(purchase.key)
        require(isinstance(ended, Voided), f"ended as {named(ended)}")
        return "an address, then ended"

    async def _hold_and_capture(self) -> str:
        purchase = replace(self._trial.purchase(), capture=False)
        approved = await self._trial.approved(purchase)
        return await self._trial.capture(purchase.key, approved.reference)

    async def _hold_and_void(self) -> str:
        purchase = replace(self._trial.purchase(), capture=False)
        await self._trial.approved(purchase)
        return await self._trial.let_go(purchase.key)

    def _first(self) -> Purchase:
        """The purchase that was charged. Raises: Skipped if none was."""
        if self._purchase is None or not self._trial.taken.get(self._purchase.key):
            raise Skipped("no card could be charged")
        return self._purchase
