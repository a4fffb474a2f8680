"""How mails are queued: by statements that look at what is due, until one has nothing more to see;
what such a statement fails for is left to the operator's list.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from paydesk.core.wording import noted
from paydesk.database.pool import Database
from paydesk.domain.alarms.setting_aside import DueRow, claimed

NOT_TOLD = noted("it can't be queued")
"""Why what is due stands in the operator's list."""


@dataclass(frozen=True, slots=True)
class Told:
    """How many mails a statement has queued, and how many rows (or merchants) it has looked at."""

    mails: int
    seen: int


Tell: TypeAlias = Callable[[Sequence[int] | None], Awaitable[list[Told]]]
"""Tells what is due: of these rows only, or (None) of as many as one statement looks at."""


async def queue_all(
    database: Database, tell: Tell, due: Callable[[], Awaitable[Sequence[DueRow]]], *, noun: str, batch: int = 1
) -> int:
    """Queue all mails that are due; returns how many. Moves no money.

    A look at fewer than `batch` rows was the last. `due` finds the rows that `tell` would look at,
    of which one is called `noun` in the operator's list.
    """
    queued, seen = 0, batch
    while seen >= batch:
        told = await claimed(database, tell, due, _leave_to_the_alarm, noun=noun, doing=NOT_TOLD)
        queued, seen = queued + sum(one.mails for one in told), sum(one.seen for one in told)
    return queued


async def _leave_to_the_alarm(_: Sequence[DueRow]) -> None:
    """The statements leave out what has an alarm that is younger than an hour."""
