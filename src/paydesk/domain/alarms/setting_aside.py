"""One bad row stops nobody: a batch that fails is worked on in halves until what fails stands alone
and is set aside.

The rest is recorded, and what was set aside waits in the operator's list with its reason. Whoever
calls gives it a later date, so that it is not met again at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Generic, TypeVar

import asyncpg
import structlog

from paydesk.core.clock import utc_now
from paydesk.database.pool import AWAY, Database
from paydesk.database.statements import Connection
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms
from paydesk.domain.merchants.shop import Shop

Item = TypeVar("Item")
Result = TypeVar("Result")

log = structlog.get_logger()

ASIDE = timedelta(hours=1)
"""For how long what was set aside is left alone, where its row has no date of its own that could be
moved: whoever looks for what is due leaves out what has an open alarm that was raised within this
time. Settled, it is tried at once.
"""

_PASSING = asyncpg.TransactionRollbackError
"""Two who met at the same rows: once more, and it goes well."""
_MOST_TRIES = 3
_LONGEST_WHY = 300


@dataclass(frozen=True, slots=True)
class Worked(Generic[Item, Result]):
    """What came of a batch: the results of what went well, and what did not,
    each with its error.
    """

    results: list[Result] = field(default_factory=list)
    failed: list[tuple[Item, Exception]] = field(default_factory=list)

    def add(self, other: Worked[Item, Result]) -> None:
        """Take in what came of another part of the batch."""
        self.results.extend(other.results)
        self.failed.extend(other.failed)


async def together(
    items: Sequence[Item], work: Callable[[Sequence[Item]], Awaitable[Iterable[Result]]]
) -> Worked[Item, Result]:
    """Work on a batch as a whole; if that fails on its halves, and so on. Moves no money by itself.

    `work` does all or nothing: one statement, and what has to be read and worked out for it.
    Raises: what the database raises when it is away, which says nothing about any row.
    """
    if not items:
        return Worked()
    try:
        return Worked(list(await _more_than_once(items, work)))
    except AWAY:
        raise
    except Exception as error:
        if len(items) == 1:
            return Worked(failed=[(items[0], error)])
    middle = len(items) // 2
    worked = await together(items[:middle], work)
    worked.add(await together(items[middle:], work))
    return worked


async def _more_than_once(
    items: Sequence[Item], work: Callable[[Sequence[Item]], Awaitable[Iterable[Result]]]
) -> Iterable[Result]:
    for _ in range(_MOST_TRIES - 1):
        try:
            return await work(items)
        except _PASSING:
            await asyncio.sleep(0)
    return await work(items)


async def side_by_side(items: Sequence[Item], work: Callable[[Item], Awaitable[Result]]) -> Worked[Item, Result]:
    """Work on each by itself, all at once. Moves no money by itself.

    Raises: what the database raises when it is away, once the others are done.
    """
    answers = await asyncio.gather(*(work(item) for item in items), return_exceptions=True)
    worked: Worked[Item, Result] = Worked()
    for item, answer in zip(items, answers, strict=True):
        if not isinstance(answer, BaseException):
            worked.results.append(answer)
        elif isinstance(answer, AWAY) or not isinstance(answer, Exception):
            raise answer
        else:
            worked.failed.append((item, answer))
    return worked


async def one_by_one(items: Sequence[Item], work: Callable[[Item], Awaitable[Result]]) -> Worked[Item, Result]:
    """Work on each by itself, one after another. Moves no money by itself.

    Raises: as `together`.
    """
    worked: Worked[Item, Result] = Worked()
    for item in items:
        try:
            worked.results.append(await work(item))
        except AWAY:
            raise
        except Exception as error:
            worked.failed.append((item, error))
    return worked


@dataclass(frozen=True, slots=True)
class DueRow:
    """A row that something is due for, by its merchant's side and its id."""

    merchant_id: int
    live: bool
    id: int

    @property
    def shop(self) -> Shop:
        """Its merchant's side."""
        return Shop(self.merchant_id, self.live)


Claim = Callable[[Sequence[int] | None], Awaitable[list[Result]]]
"""Does what is due with one statement: of the rows with these ids, or (None) of as many
as there is room for."""


async def claimed(
    database: Database,
    claim: Claim[Result],
    due: Callable[[], Awaitable[Sequence[DueRow]]],
    postpone: Callable[[Sequence[DueRow]], Awaitable[None]],
    *,
    noun: str,
    doing: str,
) -> list[Result]:
    """Do what is due with one statement; where that fails, without the rows that it fails for,
    which get a later date.

    Args: due finds the same rows; noun is what one is called in the operator's list (`payment`),
    doing what can't be done. Raises: what the database raises when it is away. Moves no money
    by itself.
    """
    try:
        return await claim(None)
    except (*AWAY, _PASSING):
        raise
    except Exception as error:
        log.warning("what is due is done row by row", noun=noun, why=reason_of(error))
    worked = await together(await due(), lambda rows: claim([row.id for row in rows]))
    aside = await set_aside(database, worked, lambda row: (row.shop, f"{noun} {row.id}"), doing=doing)
    if aside:
        await postpone(aside)
    return worked.results


def names_of(rows: Sequence[DueRow]) -> dict[str, list[int]]:
    """Due rows as the arrays that statements take."""
    return {
        "merchant_ids": [row.shop.merchant_id for row in rows],
        "lives": [row.shop.live for row in rows],
        "ids": [row.id for row in rows],
    }


async def set_aside(
    database: Connection,
    worked: Worked[Item, Result],
    about: Callable[[Item], tuple[Shop | None, str]],
    *,
    doing: str,
) -> list[Item]:
    """Put what failed into the operator's list; returns it. Moves no money.

    Args: database may be a connection in a transaction of the caller's; about names a row by its
        shop and its subject (`payment attempt 18`); doing says what could not be done.
    """
    if not worked.failed:
        return []
    alarms = []
    for item, error in worked.failed:
        shop, subject = about(item)
        log.warning("a row was set aside", subject=subject, doing=doing, exc_info=error)
        alarms.append(Alarm(AlarmKind.set_aside, subject, f"{doing}: {reason_of(error)}", shop))
    await raise_alarms(database, alarms, now=utc_now())
    return [item for item, _ in worked.failed]


def reason_of(error: Exception) -> str:
    """An error in words that may be kept: what the database says of a row's values stays out."""
    said = str(error.args[0]) if isinstance(error, asyncpg.PostgresError) and error.args else str(error)
    return f"{type(error).__name__}: {said[:_LONGEST_WHY]}"
