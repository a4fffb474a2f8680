"""An acquirer that loses messages and is slow to know what it did; for tests of how Paydesk copes."""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TypeVar

from paydesk.adapters.acquirers.interface import (
    Acquirer,
    Dispute,
    DisputePage,
    Earlier,
    FailedRefundPage,
    Finding,
    MovementFinding,
    NotFound,
    Outcome,
    OutcomeUnknown,
    Purchase,
    Release,
)
from paydesk.adapters.acquirers.listing import PurchasePage, RefundPage

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class Lies:
    """How an acquirer misbehaves.

    `lose_questions` and `lose_answers` are probabilities from 0 to 1 (a lost question never reaches the bank, a lost
    answer is one to something that the bank did); `hide_for` is how many seconds after a purchase, capture, void or
    refund a look-up knows nothing.
    """

    lose_questions: float = 0.0
    lose_answers: float = 0.0
    hide_for: float = 0.0
    seed: int = 0


class LyingAcquirer:
    """Stands before an honest acquirer and spoils what passes; everything that moves money may get lost."""

    def __init__(self, honest: Acquirer, lies: Lies, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.honest = honest
        self.name: str = honest.name
        self.hold_period: timedelta = honest.hold_period
        self.key_lifetime: timedelta = honest.key_lifetime
        self.keeps_cards: bool = honest.keeps_cards
        self.challenge_origins: tuple[str, ...] = honest.challenge_origins
        self._lies = lies
        self._clock = clock
        self._chance = random.Random(lies.seed)  # noqa: S311 - repeatable on purpose
        self._hidden_until: dict[str, float] = {}

    async def authorize(self, purchase: Purchase) -> Outcome:
        """As the honest acquirer, or lost. Moves money. Raises: OutcomeUnknown."""
        return await self._spoiled(lambda: self.honest.authorize(purchase), hide=purchase.key)

    async def charge_stored(self, purchase: Purchase) -> Outcome:
        """As the honest acquirer, or lost. Moves money. Raises: OutcomeUnknown."""
        return await self._spoiled(lambda: self.honest.charge_stored(purchase), hide=purchase.key)

    async def capture(self, key: str, reference: str, amount: Decimal, currency: str) -> None:
        """As the honest acquirer, or lost. Moves money. Raises: OutcomeUnknown."""
        await self._spoiled(lambda: self.honest.capture(key, reference, amount, currency), hide=key)

    async def void(self, key: str, of_key: str) -> Release:
        """As the honest acquirer, or lost. Moves money. Raises: OutcomeUnknown."""
        return await self._spoiled(lambda: self.honest.void(key, of_key), hide=key)

    async def undo(self, key: str, of_key: str) -> Finding:
        """As the honest acquirer, or lost. Moves money. Raises: OutcomeUnknown."""
        return await self._spoiled(lambda: self.honest.undo(key, of_key), hide=key)

    async def end_challenge(self, of_key: str) -> Finding:
        """As the honest acquirer, or lost. Moves no money. Raises: OutcomeUnknown."""
        return await self._spoiled(lambda: self.honest.end_challenge(of_key))

    async def refund(self, key: str, reference: str, amount: Decimal, currency: str) -> str:
        """As the honest acquirer, or lost. Moves money. Raises: OutcomeUnknown."""
        return await self._spoiled(lambda: self.honest.refund(key, reference, amount, currency), hide=key)

    async def find(self, key: str, not_after: datetime | None = None) -> Finding:
        """NotFound while a purchase is hidden, then the truth. Moves no money."""
        if self._clock() < self._hidden_until.get(key, float("-inf")):
            return NotFound()
        return await self.honest.find(key, not_after)

    async def look_back(self, key: str) -> Earlier | None:
        """As the honest acquirer, whom this leaves alone. Moves no money."""
        return await self.honest.look_back(key)

    async def find_movement(self, key: str, of_key: str, reference: str) -> MovementFinding:
        """NotFound while a capture, void or refund is hidden, then the truth. Moves no money."""
        if self._clock() < self._hidden_until.get(key, float("-inf")):
            return NotFound()
        return await self.honest.find_movement(key, of_key, reference)

    async def disputes(self, after: str) -> DisputePage:
        """As the honest acquirer, whom this leaves alone. Moves no money."""
        return await self.honest.disputes(after)

    async def failed_refunds(self, after: str) -> FailedRefundPage:
        """As the honest acquirer, whom this leaves alone. Moves no money."""
        return await self.honest.failed_refunds(after)

    async def list_purchases(self, since: datetime, after: str) -> PurchasePage:
        """As the honest acquirer: its own list does not lie. Moves no money."""
        return await self.honest.list_purchases(since, after)

    async def list_refunds(self, since: datetime, after: str) -> RefundPage:
        """As the honest acquirer. Moves no money."""
        return await self.honest.list_refunds(since, after)

    async def find_dispute(self, reference: str) -> Dispute | None:
        """As the honest acquirer, whom this leaves alone. Moves no money."""
        return await self.honest.find_dispute(reference)

    async def submit_evidence(self, reference: str, text: str) -> None:
        """As the honest acquirer, or lost. Moves no money. Raises: OutcomeUnknown."""
        await self._spoiled(lambda: self.honest.submit_evidence(reference, text))

    async def close(self) -> None:
        """Let go of the honest acquirer."""
        await self.honest.close()

    async def _spoiled(self, call: Callable[[], Awaitable[_Answer]], *, hide: str = "") -> _Answer:
        """Pass a call on, or lose its question or its answer; what it did under `hide` is hidden for a while."""
        if self._chance.random() < self._lies.lose_questions:
            raise OutcomeUnknown("the question was lost on its way")
        if hide:
            self._hidden_until.setdefault(hide, self._clock() + self._lies.hide_for)
        answer = await call()
        if self._chance.random() < self._lies.lose_answers:
            raise OutcomeUnknown("the answer was lost on its way")
        return answer
