"""Commands that move a merchant among three cells, interleaved by chance: each stands still before
and after every statement until it is its turn, is killed there, or goes on.
"""

from __future__ import annotations

import asyncio
import inspect
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from random import Random
from typing import Any

import asyncpg
import pytest
from tests import shopfront
from tests.domain.moving.play import HERE, THERE, Killed
from tests.domain.moving.putting_back import HOME, Past
from tests.processes import PATIENCE

from paydesk.core.clock import utc_now
from paydesk.core.errors import PaydeskError
from paydesk.database import statements
from paydesk.database.pool import Database
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.cells import adding, directory, fencing, living, ranges
from paydesk.domain.cells.directory import Kind, find_cell
from paydesk.domain.cells.fencing import Fence, Fenced, find_fence
from paydesk.domain.moving import accounts, copying
from paydesk.domain.moving.cancelling import cancel_move
from paydesk.domain.moving.copying import Side
from paydesk.domain.moving.moving import Moved, move_merchant
from paydesk.domain.moving.removing import remove_copy
from paydesk.domain.moving.steps import Move
from paydesk.domain.operations.merchants import resume_merchant, suspend_merchant

STATEMENTS = (accounts, adding, copying, directory, fencing, living, ranges)
CELLS = (HERE, THERE, HOME)
AT_ONCE = 3
QUIET = 0.03
"""Seconds after which who goes on and comes by no point is taken to wait for somebody else."""
BEGINS, DIES, WRITES, SUSPENDS = 0.05, 0.015, 0.2, 0.05
"""How likely it is at each turn that one more command is given, the one whose turn it is dies,
somebody writes something of the merchant's, and the merchant is suspended, or may sell again.
"""
AT_A_TURN = (1, 1, 2, 5, 20, 60)
"""By how many points a command goes on at a turn: commands are to come far, too."""
ROUNDS = 8
"""How many commands an operator gives, at most, to end what is half-way."""
NEXT_STEP = re.compile(r"(?:in cell (\d+), by: )?paydesk merchant move \d+ --to (\d+)( --remove-copy| --cancel)?")
IN_THERE = re.compile(r"in cell (\d+)")


@dataclass(eq=False)
class Actor:
    """A command that somebody has given, and where it stands still."""

    name: str
    task: asyncio.Task[Any] | None = None
    point: str = ""
    turn: asyncio.Future[bool] | None = None

    @property
    def stands(self) -> bool:
        """Whether it waits for its turn."""
        return self.turn is not None

    @property
    def is_over(self) -> bool:
        """Whether it has ended, or died."""
        return self.task is None or self.task.done()

    async def come_by(self, point: str) -> None:
        """Stand still until it is its turn, or it dies."""
        if asyncio.current_task() is not self.task:
            return
        self.point, self.turn = point, asyncio.get_running_loop().create_future()
        if not await self.turn:
            raise Killed

    def go_on(self, *, lives: bool) -> None:
        """It is its turn: it goes on, or dies there."""
        turn, self.turn = self.turn, None
        if turn is not None and not turn.done():
            turn.set_result(lives)


ACTING: ContextVar[Actor | None] = ContextVar("acting", default=None)


async def come_by(point: str) -> None:
    """Whoever gives the command that is under way stands still, if anybody does."""
    actor = ACTING.get()
    if actor is not None:
        await actor.come_by(point)


def with_points(point: str, run: Callable[..., Any]) -> Callable[..., Any]:
    """A statement, with a point before it and one after it."""
    if inspect.isasyncgenfunction(run):

        @wraps(run)
        async def rows(*given: Any, **named: Any) -> AsyncIterator[Any]:
            await come_by(f"before {point}")
            found = [row async for row in run(*given, **named)]
            await come_by(f"after {point}")
            for row in found:
                yield row

        return rows

    @wraps(run)
    async def result(*given: Any, **named: Any) -> Any:
        await come_by(f"before {point}")
        found = await run(*given, **named)
        await come_by(f"after {point}")
        return found

    return result


def stop_at_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have all statements by which merchants move be points."""
    for room in STATEMENTS:
        named: Any = room.queries
        read: Any = statements._read(named._path)
        for name in read.available_queries:
            statement = getattr(named, name)
            if inspect.ismethod(statement) and not name.endswith("_cursor"):
                monkeypatch.setattr(named, name, with_points(name, statement))


@dataclass
class Playing:
    """Three cells among which a merchant moves, as chance has it; `told` is what came of each
    command, `wrong` what must never be.
    """

    past: Past
    chance: Random
    number: int = 0
    actors: list[Actor] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    suspensions: int = 0
    suspending: asyncio.Task[None] | None = None
    wrong: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    @property
    def whose(self) -> int:
        """The merchant's id."""
        return self.past.play.merchant.id

    def side(self, cell: int) -> Side:
        return {HERE: self.past.play.here.side, THERE: self.past.play.there.side, HOME: self.past.home}[cell]

    def database(self, cell: int) -> Database:
        return self.side(cell).database

    def move(self, source: int, target: int) -> Move:
        return Move(
            self.side(source), self.side(target), self.past.home.database, self.whose, target, same_simulator=True
        )

    async def has(self, cell: int) -> bool:
        asked = "select exists (select from merchant where id = $1)"
        return bool(await self.database(cell).fetchval(asked, self.whose))

    async def fence(self, cell: int) -> Fence | None:
        return await find_fence(self.database(cell), self.whose)

    async def led_to(self) -> int | None:
        found = await find_cell(self.past.home.database, Kind.merchant, str(self.whose))
        return None if found is None else found.number

    async def writable(self) -> list[int]:
        found = []
        for cell in CELLS:
            fence = await self.fence(cell)
            if await self.has(cell) and (fence is None or (not fence.arrives and fence.closed_at is None)):
                found.append(cell)
        return found

    async def command(self, source: int, target: int, how: str) -> None:
        """Somebody gives a command, which ends in words that it knows."""
        said = f"{how} {source}>{target}"
        try:
            if how == "move":
                moved: Moved = await move_merchant(self.move(source, target))
                said += f": {'was there' if moved.was_there else 'moved'}"
            elif how == "cancel":
                await cancel_move(self.move(source, target))
                said += ": cancelled"
            else:
                await remove_copy(self.move(source, target))
                said += ": removed"
        except Killed:
            said += ": killed"
        except PaydeskError as error:
            said += f": {type(error).__name__}: {error}"
        except BaseException as error:
            self.wrong.append(f"{said}: {error!r}")
            said += f": WRONG {error!r}"
        self.told.append(said)

    async def begin(self) -> None:
        """Somebody gives a command."""
        source = (await self.led_to() or HERE) if self.chance.random() < 0.7 else self.chance.choice(CELLS)
        target = self.chance.choice([one for one in CELLS if one != source])
        how = self.chance.choices(["move", "cancel", "remove"], [6, 3, 1])[0]
        self.number += 1
        actor = Actor(f"{self.number} {how} {source}>{target}")
        self.told.append(f"begins {actor.name}")

        async def acts() -> None:
            ACTING.set(actor)
            await self.command(source, target, how)

        actor.task = asyncio.create_task(acts())
        self.actors.append(actor)

    async def write(self) -> None:
        """A customer is sent to a checkout of the shop, in a cell that has it."""
        cell = self.chance.choice(CELLS)
        if not await self.has(cell):
            return
        name = f"O-{len(self.written)}"
        with suppress(Fenced, PaydeskError, asyncpg.PostgresError):
            await shopfront.order(self.database(cell), self.past.play.shop, name)
            self.written.append(name)

    async def suspend(self) -> None:
        """An operator suspends the merchant, or lets it sell again, in a cell that has it; who
        waits for a command that stands still does so until that goes on.
        """
        cell = self.chance.choice(CELLS)
        if self.suspending is None and await self.has(cell):
            self.suspending = asyncio.create_task(self._suspend(cell))
            await asyncio.wait([self.suspending], timeout=QUIET)
        elif self.suspending is not None and self.suspending.done():
            self.suspending = None

    async def _suspend(self, cell: int) -> None:
        given = {"database": self.database(cell), "actor": COMMAND_LINE, "merchant_id": self.whose, "now": utc_now()}
        with suppress(Fenced, PaydeskError):
            if self.suspensions % 2:
                await resume_merchant(**given)
            else:
                await suspend_merchant(**given, reason="asked for papers")
            self.suspensions += 1
            self.told.append(f"suspension {self.suspensions} in {cell}")

    async def look(self) -> None:
        """It is open in one cell at most: those that it is in at three looks."""
        found = set(await self.writable())
        for _ in range(3):
            if len(found) < 2:
                return
            await asyncio.sleep(0.02)
            found &= set(await self.writable())
        if len(found) > 1:
            self.wrong.append(f"open in {found} at {[(one.name, one.point) for one in self.actors]}")

    async def play(self, commands: int) -> None:
        """Give so many commands, some at once, and have each go on by chance."""
        end = time.monotonic() + PATIENCE
        while (self.number < commands or self.actors) and time.monotonic() < end:
            if self.number < commands and self._has_room():
                await self.begin()
            await self._quiet(*self.actors)
            self.actors = [one for one in self.actors if not one.is_over]
            if standing := [one for one in self.actors if one.stands]:
                await self._turn(self.chance.choice(standing))
            if self.chance.random() < WRITES:
                await self.write()
            if self.chance.random() < SUSPENDS:
                await self.suspend()
            await self.look()
        if self.suspending is not None:
            await asyncio.wait_for(self.suspending, PATIENCE)
        for one in self.actors:
            self.wrong.append(f"{one.name} stands still at {one.point}")
            assert one.task
            one.task.cancel()

    def _has_room(self) -> bool:
        return not self.actors or (len(self.actors) < AT_ONCE and self.chance.random() < BEGINS)

    async def _turn(self, one: Actor) -> None:
        """A command goes on by some points, or dies."""
        lives = self.chance.random() >= DIES
        if not lives:
            self.told.append(f"kills {one.name} at {one.point}")
        for _ in range(self.chance.choice(AT_A_TURN)):
            one.go_on(lives=lives)
            await self._quiet(one)
            if not one.stands:
                break

    async def _quiet(self, *actors: Actor) -> None:
        """Until these stand still, have ended, or wait for somebody."""
        end = time.monotonic() + QUIET
        while time.monotonic() < end and not all(one.stands or one.is_over for one in actors):  # noqa: ASYNC110
            await asyncio.sleep(0.0005)

    async def clear_up(self) -> None:
        """An operator ends what is half-way, by what commands say."""
        for _ in range(ROUNDS):
            todo = await self._next_step()
            if todo is None:
                return
            await self.command(*todo)
            await self._as_told()
        if await self._next_step() is not None:
            self.wrong.append(f"not cleared up: {await self.stands()}")

    async def _as_told(self) -> None:
        """Do what the last command said is to be done."""
        said = self.told[-1]
        step = NEXT_STEP.search(said)
        if step is None:
            return
        how = {None: "move", " --cancel": "cancel", " --remove-copy": "remove"}[step[3]]
        source = int(step[1] or said.split()[1].split(">")[0])
        if how == "cancel" and (where := IN_THERE.search(said)):
            source = int(where[1])
        if source != int(step[2]):
            await self.command(source, int(step[2]), how)

    async def _next_step(self) -> tuple[int, int, str] | None:
        """What ends one of the moves that are half-way: from where, to where, and how."""
        fences = {cell: fence for cell in CELLS if (fence := await self.fence(cell)) is not None}
        decided = [(cell, fence.other_cell) for cell, fence in fences.items() if fence.moved_at is not None]
        if decided:
            return *decided[0], "move"
        for cell, fence in fences.items():
            if not fence.arrives:
                return cell, fence.other_cell, self.chance.choice(["move", "cancel"])
        for cell, fence in fences.items():
            return fence.other_cell, cell, self.chance.choice(["move", "cancel"])
        return None

    async def stands(self) -> str:
        """Where it is, in words."""
        found = {cell: (await self.has(cell), await self.fence(cell)) for cell in CELLS}
        return f"{found}, led to {await self.led_to()}"

    async def prove(self) -> None:
        """It is in one cell, to which the directory leads, with all that was written."""
        where = [cell for cell in CELLS if await self.has(cell)]
        if where != [await self.led_to()] or [cell for cell in CELLS if await self.fence(cell)]:
            self.wrong.append(f"stands: {await self.stands()}")
            return
        asked = (
            "select suspended_at is not null, (select count(*) from audit_entry where merchant_id = m.id"
            " and action in ('merchant_suspended', 'merchant_resumed')) from merchant m where id = $1"
        )
        suspended, times = await self.database(where[0]).fetchrow(asked, self.whose)
        if (suspended, times) != (bool(self.suspensions % 2), self.suspensions):
            self.wrong.append(f"suspended: {suspended}, {times} times, not {self.suspensions}")
        for cell in CELLS:
            asked = "select merchant_order_id from checkout where merchant_id = $1 order by id"
            found = [row["merchant_order_id"] for row in await self.database(cell).fetch(asked, self.whose)]
            here = sorted(self.written) if cell in where else []
            lost = set(here) - set(found)
            if lost or (not here and found) or len(found) != len(set(found)):
                self.wrong.append(f"cell {cell} has {len(found)}, lost {lost}, of {len(here)}")
