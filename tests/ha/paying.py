"""Customers who come and pay while blow after blow falls on whichever machine is the primary."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from functools import partial
from time import monotonic

from tests.faults.customers import plan
from tests.faults.keeping import Wish
from tests.faults.stage import Order, Stage
from tests.ha.blows import Blow
from tests.ha.cluster import Cluster
from tests.ha.machines import Machine
from tests.processes import eventually

AT_ONCE = 16
PACE = 0.25
"""Seconds between two customers who come."""
WISHES = (
    *(("socks", Wish.KEEP), ("mugs", Wish.SHIP), ("socks", Wish.KEEP)),
    *(("socks", Wish.GIVE_BACK_A_PART), ("socks", Wish.KEEP)),
)


def order(number: int, chance: random.Random) -> Order:
    """One customer's order; most are left as they are, some are shipped,
    some given back in part.
    """
    shop, wish = WISHES[number % len(WISHES)]
    return Order(f"order-{number:04}", plan(chance), wish, shop)


@dataclass(frozen=True, slots=True)
class Outage:
    """For how many seconds nobody could pay, after what happened to which machine."""

    what: str
    machine: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.machine} {self.what}: nobody could pay for {self.seconds:.1f} s"


@dataclass(slots=True)
class Till:
    """When customers saw that their orders were paid, by the event loop's clock."""

    stage: Stage
    cluster: Cluster
    moments: list[float] = field(default_factory=list)

    @property
    def paid(self) -> int:
        """How many have."""
        return len(self.moments)

    async def watch(self) -> None:
        """Note the moments, until cancelled."""
        while True:
            self.moments += [monotonic()] * (self.stage.crowd.paid - self.paid)
            await asyncio.sleep(0.05)

    async def come(self, more: int) -> None:
        """Wait until so many more have paid."""
        goal = self.paid + more
        await eventually(lambda: self.paid >= goal, "more customers have paid", self.stage.web.tail, self.cluster.tail)

    def longest_wait(self, since: float) -> float:
        """The longest time in which nobody paid that ended after a moment, in seconds."""
        late = [moment for moment in self.moments if moment > since]
        before = [moment for moment in self.moments if moment <= since][-1:]
        return max(after - one for one, after in zip([*before, *late], late, strict=False))


async def pay_through(stage: Stage, cluster: Cluster, drawn: list[Blow], chance: random.Random) -> list[Outage]:
    """Have everybody come and pay, spread over the blows;
    what was struck is mended once others do its work.

    In the end another machine is made to lead in good order.
    """
    till, outages = Till(stage, cluster), []
    playing = [partial(_blow, till, blow, chance) for blow in drawn] + [partial(_handover, till)]
    share = len(stage.crowd.customers) // len(playing)
    shopping, watching = asyncio.create_task(stage.crowd.shop(AT_ONCE)), asyncio.create_task(till.watch())
    try:
        for number, play in enumerate(playing, start=1):
            primary = await cluster.primary()
            last = number == len(playing)
            coming = asyncio.create_task(_come(stage, len(stage.crowd.customers) if last else number * share))
            outages.append(await play(primary))
            print(f"{number:2} {outages[-1]}", flush=True)
            await coming
        stage.crowd.closing = True
        await shopping
    finally:
        for task in (shopping, watching):
            task.cancel()
        await asyncio.gather(shopping, watching, return_exceptions=True)
    return outages


async def _come(stage: Stage, until: int) -> None:
    """Let customers in at an even pace, until so many have come in all."""
    while stage.crowd.let_in < until:
        stage.crowd.let_in += 1
        await asyncio.sleep(PACE)


async def _blow(till: Till, blow: Blow, chance: random.Random, primary: Machine) -> Outage:
    """Strike the primary while customers pay, and mend it once many who came afterwards
    could pay.
    """
    await till.come(5)
    await asyncio.sleep(chance.random())
    struck = monotonic()
    blow.strike(primary)
    try:
        if blow.fails_over:
            await till.cluster.led_by_another(primary)
        # More than were at it when it happened.
        await till.come(AT_ONCE + 1)
    finally:
        blow.mend(till.cluster, primary)
    return Outage(f"{blow.kind} ({blow.whole})", primary.name, till.longest_wait(struck))


async def _handover(till: Till, primary: Machine) -> Outage:
    """Have another machine lead while customers pay,
    as an operator does before touching the primary's.
    """
    await till.come(5)
    begun = monotonic()
    switching = asyncio.create_task(till.cluster.switch_over(primary))
    await till.come(AT_ONCE + 1)
    await switching
    assert await till.cluster.primary() != primary
    return Outage("handed over by patronictl", primary.name, till.longest_wait(begun))
