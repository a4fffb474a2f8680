"""The soak: web, workers and PostgreSQL are killed at random moments, so many times each,
while customers pay.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from tests.faults import supervising
from tests.faults.stage import Stage
from tests.faults.supervising import answering, supervised
from tests.processes import Kept, eventually, lives

AT_ONCE = 16
AHEAD = 24
"""How many more customers are let in than the kills so far account for."""
LONGEST_PEACE = 1.0
"""Seconds between two kills of a kind if nobody gets through."""


@dataclass(slots=True)
class Kills:
    """How often each kind is to be killed, and how often it was."""

    wanted: dict[str, int]
    chance: random.Random
    done: dict[str, int] = field(default_factory=lambda: {"web": 0, "work": 0, "postgres": 0})

    @property
    def progress(self) -> float:
        """From 0 to 1, by the kind that is furthest behind."""
        return min(self.done[kind] / wanted for kind, wanted in self.wanted.items())


async def pay_under_fire(stage: Stage, kills: Kills) -> None:
    """Have everybody come and pay, spread over the kills; what dies is started again."""
    crowd = stage.crowd

    def killed(kind: str) -> None:
        kills.done[kind] += 1
        crowd.let_in = AHEAD + round(kills.progress * len(crowd.customers))

    async with supervised(stage.postgres), asyncio.TaskGroup() as tasks:
        crowd.let_in = AHEAD
        tasks.create_task(crowd.shop(AT_ONCE))
        async with asyncio.TaskGroup() as killers:
            for kind, kill in (("web", _kill_web), ("work", _kill_work), ("postgres", _kill_postgres)):
                killers.create_task(kill(stage, kills, partial(killed, kind)))
        crowd.closing = True


async def _moment(stage: Stage, chance: random.Random) -> None:
    """Let some more customers get through, if they can, then strike at no particular moment."""
    goal = stage.crowd.paid + chance.randint(3, 11)
    with suppress(TimeoutError):
        async with asyncio.timeout(LONGEST_PEACE):
            while stage.crowd.paid < goal:  # noqa: ASYNC110 (payments send no event)
                await asyncio.sleep(0.02)
    await asyncio.sleep(chance.uniform(0, 0.1))


async def _kill_web(stage: Stage, kills: Kills, killed: Callable[[], None]) -> None:
    """Kill one of the processes that answer, mostly;
    sometimes their parent alone, sometimes all of them.
    """
    web = stage.web
    for number in range(kills.wanted["web"]):
        victim = {5: "parent", 12: "all", 20: "parent", 27: "all"}.get(number, "one")
        await _some_ready(web)
        await _moment(stage, kills.chance)
        if victim == "all":
            web.kill_all()
        elif victim == "parent":
            await _orphan(web)
        else:
            await _some_ready(web)
            web.kill(kills.chance.choice(web.ready))
        killed()


async def _orphan(web: Kept) -> None:
    """Kill the parent alone: its children must notice and go, or the port would stay taken."""
    children = web.descendants()
    web.ready.clear()
    web.kill(web.pid)
    await eventually(lambda: not any(map(lives, children)), "the orphans end by themselves", web.tail)


async def _kill_work(stage: Stage, kills: Kills, killed: Callable[[], None]) -> None:
    for _ in range(kills.wanted["work"]):
        await eventually(
            lambda: any(one.ready for one in stage.workers), "a worker works", *(one.tail for one in stage.workers)
        )
        await _moment(stage, kills.chance)
        worker = kills.chance.choice([one for one in stage.workers if one.ready])
        worker.kill(worker.ready[-1])
        killed()


async def _kill_postgres(stage: Stage, kills: Kills, killed: Callable[[], None]) -> None:
    for _ in range(kills.wanted["postgres"]):
        await answering(stage.postgres)
        await _moment(stage, kills.chance)
        supervising.kill(stage.postgres)
        killed()


async def _some_ready(kept: Kept) -> None:
    await eventually(lambda: bool(kept.ready), f"{kept.name} answers again", kept.tail)
