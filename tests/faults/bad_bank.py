"""Runs the simulated bank of an account that is not well: one that answers only when nobody waits
any more, or one that says other than it does. What it did stands in its record in any case.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import cast

import uvicorn

from paydesk.adapters.acquirers.hosted_pages import Page, PageState
from paydesk.adapters.acquirers.interface import (
    Approved,
    Declined,
    DeclineReason,
    Finding,
    NothingHeld,
    Outcome,
    OutcomeUnknown,
)
from paydesk.adapters.acquirers.purchases import Purchase
from paydesk.adapters.acquirers.simulator import Bank, Record, SimulatedAcquirer
from paydesk.adapters.acquirers.simulator.remote import Timeouts
from paydesk.adapters.acquirers.simulator.server import bank_app
from paydesk.adapters.acquirers.wrapping import PassingAcquirer

TOO_LONG = Timeouts().total + 1
"""Seconds: nobody waits for an answer that long."""


class Lie(StrEnum):
    """What a lying bank does with a purchase, beside what it says."""

    NONE = "none"
    DENIES = "denies"
    """It takes the money, and says that the card was declined."""
    TAKES_MORE = "takes more"
    """It takes one more than it was asked for, and says nothing of that."""
    HIDES = "hides"
    """It takes the money, gives no answer, and says that it knows of nothing."""
    PROMISES = "promises"
    """It says that it has taken the money, and has taken nothing."""


LIES = {Lie.NONE: 8, Lie.DENIES: 4, Lie.TAKES_MORE: 3, Lie.HIDES: 4, Lie.PROMISES: 1}


class BadBank(PassingAcquirer):
    """A bank that is well, and whose pages and record are there."""

    def __init__(self, honest: SimulatedAcquirer, seed: int) -> None:
        super().__init__(honest)
        self.bank = honest.bank
        self._seed = seed
        self._times: Counter[str] = Counter()

    def chance(self, purchase: Purchase) -> random.Random:
        """What happens to an order's first purchase, its second one and so on: the same in each
        play.
        """
        order = purchase.mark.order if purchase.mark else ""
        self._times[order] += 1
        return random.Random(f"{self._seed} {order} {self._times[order]}")


class SlowBank(BadBank):
    """Answers purchases too late; some it has decided before, some it decides only then."""

    async def authorize(self, purchase: Purchase) -> Outcome:
        """As the honest bank, for nobody. Moves money."""
        if self.chance(purchase).random() < 0.5:
            await asyncio.sleep(TOO_LONG)
            return await self.honest.authorize(purchase)
        answer = await self.honest.authorize(purchase)
        await asyncio.sleep(TOO_LONG)
        return answer


class LyingBank(BadBank):
    """Says other than it does, of purchases and of what was paid on its pages; its lists are
    true.
    """

    def __init__(self, honest: SimulatedAcquirer, seed: int) -> None:
        super().__init__(honest, seed)
        self._hidden: set[str] = set()

    async def authorize(self, purchase: Purchase) -> Outcome:
        """What it does with it, and what it says of that. Moves money."""
        lie = self.chance(purchase).choices([*LIES], [*LIES.values()])[0]
        if lie is Lie.PROMISES:
            return Approved("never-made")
        if lie is Lie.HIDES:
            self._hidden.add(purchase.key)
        more = 1 if lie is Lie.TAKES_MORE else 0
        answer = await self.honest.authorize(replace(purchase, amount=purchase.amount + more))
        if lie is Lie.HIDES:
            raise OutcomeUnknown("the answer was lost")
        if lie is Lie.DENIES and isinstance(answer, Approved):
            return Declined(DeclineReason.DECLINED)
        return answer

    async def find(self, key: str, not_after: object = None) -> Finding:
        """Nothing, of what it hides. Moves no money."""
        return NothingHeld() if key in self._hidden else await self.honest.find(key)

    async def find_page(self, key: str, reference: str) -> Page:
        """Of what was paid on a page it says another amount. Moves no money."""
        page = await self.honest.find_page(key, reference)
        return replace(page, amount=page.amount + 1) if page.state is PageState.PAID else page


MOODS: dict[str, Callable[[SimulatedAcquirer, int], BadBank]] = {
    "well": BadBank,
    "slow": SlowBank,
    "lying": LyingBank,
}


def main(mood: str, port: str, record: str, seed: str) -> None:
    """Serve on loopback until stopped."""
    honest = SimulatedAcquirer(Bank(Record(Path(record))), base_url=f"http://127.0.0.1:{port}", latency=0.0)
    uvicorn.run(
        bank_app(cast("SimulatedAcquirer", MOODS[mood](honest, int(seed)))),
        host="127.0.0.1",
        port=int(port),
        log_level="warning",
        access_log=False,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
