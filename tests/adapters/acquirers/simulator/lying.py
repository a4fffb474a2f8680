"""An acquirer that loses messages and is slow to know what it did, to see how Paydesk copes."""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from paydesk.adapters.acquirers.interface import Acquirer, Finding, MovementFinding, NothingHeld, OutcomeUnknown
from paydesk.adapters.acquirers.wrapping import PassingAcquirer

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class Lies:
    """How an acquirer misbehaves.

    `lose_questions` and `lose_answers` are probabilities from 0 to 1 (a lost question never reaches
    the bank, a lost answer is one to something that the bank did); `hide_for` is how many seconds
    after a purchase, capture, void or refund a look-up knows nothing.
    """

    lose_questions: float = 0.0
    lose_answers: float = 0.0
    hide_for: float = 0.0
    seed: int = 0


class LyingAcquirer(PassingAcquirer):
    """Stands before an honest acquirer and spoils what passes;
    everything that moves money may get lost.

    Its look-ups know nothing of what is hidden; its lists do not lie.
    """

    def __init__(self, honest: Acquirer, lies: Lies, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(honest)
        self._lies = lies
        self._clock = clock
        self._chance = random.Random(lies.seed)
        self._hidden_until: dict[str, float] = {}

    async def find(self, key: str, not_after: datetime | None = None) -> Finding:
        """NothingHeld while a purchase is hidden, then the truth. Moves no money."""
        return NothingHeld() if self._hides(key) else await self.honest.find(key, not_after)

    async def find_movement(self, key: str, of_key: str, reference: str) -> MovementFinding:
        """NothingHeld while a capture, void or refund is hidden, then the truth. Moves no money."""
        return NothingHeld() if self._hides(key) else await self.honest.find_movement(key, of_key, reference)

    def _hides(self, key: str) -> bool:
        return self._clock() < self._hidden_until.get(key, float("-inf"))

    async def _move(self, key: str, call: Callable[[], Awaitable[_Answer]]) -> _Answer:
        """Pass a call on, or lose its question or its answer;
        what it did under the key is hidden for a while.
        """
        return await self._spoiled(call, hide=key)

    async def _tell(self, call: Callable[[], Awaitable[_Answer]]) -> _Answer:
        """Pass a call on, or lose its question or its answer. Raises: OutcomeUnknown."""
        return await self._spoiled(call)

    async def _spoiled(self, call: Callable[[], Awaitable[_Answer]], *, hide: str = "") -> _Answer:
        """Pass a call on, or lose its question or its answer;
        what it did under `hide` is hidden for a while.
        """
        if self._chance.random() < self._lies.lose_questions:
            raise OutcomeUnknown("the question was lost on its way")
        if hide:
            self._hidden_until.setdefault(hide, self._clock() + self._lies.hide_for)
        answer = await call()
        if self._chance.random() < self._lies.lose_answers:
            raise OutcomeUnknown("the answer was lost on its way")
        return answer
