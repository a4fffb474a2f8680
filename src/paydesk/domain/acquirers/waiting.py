"""What an account told that is not known in this cell waits, and is tried again: its merchant may
come here before the cell that it leaves has booked it.

The other cells are asked for it: it is over once one of them has booked it, and an operator hears
of it if none knows it, or none books it, or nobody here reads its account any more. What none of
them knows is asked for seldom from then on, and in the end no more. Moves no money.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final, Generic, TypeVar

from paydesk.core.wording import noted
from paydesk.database.pool import Database
from paydesk.database.statements import Connection
from paydesk.domain.acquirers.other_cells import MOST, Heard
from paydesk.domain.acquirers.trying_again import pause
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms, settle_alarms

ON_THE_WAY: Final = timedelta(minutes=10)
"""For how long no cell may know it, since its merchant may be between two, before an operator hears
of it."""

SILENT: Final = timedelta(hours=6)
"""For how long a cell that may know it may not answer, before an operator hears of that."""

UNREAD: Final = timedelta(hours=6)
"""For how long it may not be tried here, as nobody reads its account, before an operator hears."""

UNBOOKED: Final = timedelta(days=1)
"""For how long a cell that has it may not book it, before an operator hears of it."""

KEPT: Final = timedelta(days=60)
"""How long after it was last told one is forgotten that is over: the longest for which an acquirer
tells the same again."""

GIVEN_UP: Final = noted(
    "no cell knows of it, and it was not told for %(days)s days: it is tried no more until it is told again",
    days=KEPT.days,
)

SELDOM: Final = timedelta(days=1)
"""How often others are asked for what all of them have said that they don't know, once an operator
was told of it."""

MOST_BATCHES: Final = 100
"""How many times `MOST` are tried in one reading."""


class Stands(StrEnum):
    """How one stands that is not known here."""

    WAITS = "waits"
    """It may be on its way between two cells, or who may have it does not answer."""
    ELSEWHERE = "elsewhere"
    """Another cell has it, and has still to book it."""
    OVER = "over"
    """Another cell has booked it, or it is in no books, and need not be."""
    UNKNOWN = "unknown"
    """No cell has it that could be asked."""
    GIVEN_UP = "given_up"
    """No cell has it, nor is it told any more: nobody is asked for it until it is told again."""


_NOWHERE: Final = frozenset({Stands.WAITS, Stands.UNKNOWN, Stands.GIVEN_UP})


@dataclass(frozen=True)
class Waiting(ABC):
    """One that waits, as it was `told`.

    Times are UTC: it was told last at `last_at`, no cell has said that it has it since
    `nowhere_since`, where it `stands` so, one has, and has not booked it, since `elsewhere_since`
    (None: none has), and an operator was told of it at `alarmed_at` (None: not so).
    """

    acquirer: str
    told: str
    acquirer_reference: str
    last_at: datetime
    nowhere_since: datetime
    elsewhere_since: datetime | None
    tries: int
    alarmed_at: datetime | None
    stands: Stands | None

    def unheard_since(self, now: datetime) -> datetime:
        """Since when no cell has said that it has it; now, if one has when they were asked last."""
        return self.nowhere_since if self.stands in _NOWHERE else now

    @property
    @abstractmethod
    def known_by(self) -> str:
        """The key by which other cells say that they know it."""

    @property
    def may_be_in_no_books(self) -> bool:
        """Whether no cell need know it: then no operator hears that none does."""
        return False


One = TypeVar("One", bound=Waiting)


@dataclass(frozen=True, slots=True)
class Stood:
    """How one stands, and until when it is left alone (None: for good)."""

    stand: Stands | None
    reason: str
    next_at: datetime | None
    nowhere_since: datetime
    elsewhere_since: datetime | None
    alarmed_at: datetime | None


def columns_of(stood: Mapping[str, Stood]) -> dict[str, object]:
    """How some of an account stand, column by column, as `try_later` takes it."""
    rows = stood.values()
    return {
        "references": list(stood),
        "next_ats": [one.next_at for one in rows],
        "nowhere_sinces": [one.nowhere_since for one in rows],
        "elsewhere_sinces": [one.elsewhere_since for one in rows],
        "alarmed_ats": [one.alarmed_at for one in rows],
        "stands": [one.stand and str(one.stand) for one in rows],
        "reasons": [str(one.reason) for one in rows],
    }


@dataclass(frozen=True, slots=True)
class Reference:
    """What an account calls one of those."""

    acquirer_reference: str


@dataclass(frozen=True, slots=True)
class Kind(Generic[One]):
    """What waits of one kind: how an operator is told of it, and the statements of its table.

    A table can't be a parameter of one statement for all; those have the same words. What is over
    is tried again after `again_over`, if at all: its merchant may come from a cell that was put
    back to before it was booked there. What no cell knows is given up once it was not told for
    `given_up_after`, if at all: the others are forgotten then.
    """

    alarm: AlarmKind
    alarm_of: Callable[[One, str], Alarm]
    subject_of: Callable[[str, str], str]
    nobody_knows: str
    try_later: Callable[[Connection, str, Mapping[str, Stood]], Awaitable[None]]
    wait_no_more: Callable[[Connection, str, Sequence[str]], Awaitable[list[Reference]]]
    untried: Callable[..., Awaitable[list[One]]]
    heard_of: Callable[[Any, Sequence[One]], Awaitable[Heard]]
    again_over: timedelta | None = None
    given_up_after: timedelta | None = None


def stands(waiting: Waiting, heard: Heard, *, now: datetime) -> Stands:
    """How one stands by what the other cells say. Pure."""
    said = [one.is_over for one in heard.known if one.key == waiting.known_by]
    if said:
        return Stands.OVER if any(said) else Stands.ELSEWHERE
    grace = SILENT if heard.silent else ON_THE_WAY if heard.has_others else timedelta(0)
    is_told = waiting.alarmed_at is not None
    if not is_told and now - waiting.unheard_since(now) < grace:
        return Stands.WAITS
    return Stands.OVER if waiting.may_be_in_no_books else Stands.UNKNOWN


def why_unknown(heard: Heard, nobody_knows: str) -> str:
    """Why an operator is told of one that no cell knows that could be asked."""
    if heard.silent:
        return noted(
            "nobody knows of it, as far as the other cells can be asked: of cell %(cells)s there was no answer for "
            "hours",
            cells=", ".join(map(str, heard.silent)),
        )
    if heard.older:
        return noted(
            "nobody knows of it, as far as the other cells can be asked: cell %(cells)s runs a release that can't "
            "say it",
            cells=", ".join(map(str, heard.older)),
        )
    return nobody_knows


@dataclass(slots=True)
class Later(Generic[One]):
    """Those of an account that go on waiting after they were tried, and what an operator is told of
    that.
    """

    kind: Kind[One]
    acquirer: str
    now: datetime
    stood: dict[str, Stood] = field(default_factory=dict)
    alarms: list[Alarm] = field(default_factory=list)
    mended: list[str] = field(default_factory=list)

    def again(self, one: One) -> None:
        """It is known here, and could not be tried to its end."""
        reason = noted("it is known here, and could not be booked yet")
        next_at = self.now + pause(one.tries)
        self.stood[one.acquirer_reference] = Stood(None, reason, next_at, self.now, None, one.alarmed_at)

    def judged(self, one: One, heard: Heard) -> None:
        """It is not known here, and this is what the other cells say."""
        stand = self._stand(one, heard)
        since = (one.elsewhere_since or self.now) if stand is Stands.ELSEWHERE else None
        why = self._why(stand, since, heard)
        # To look here costs no other cell anything, and what a database forgot comes back to it.
        is_certain = stand is Stands.UNKNOWN and heard.is_whole and heard.has_others
        self._put(one, stand, since, why, self.now + (SELDOM if is_certain else pause(one.tries)))

    def unread(self, one: One, heard: Heard) -> None:
        """Nobody here reads its account, and this is what the other cells say of it."""
        stand = self._stand(one, heard)
        since = (one.elsewhere_since or self.now) if stand is Stands.ELSEWHERE else None
        why = noted(
            "nobody in this cell reads the account %(account)s any more, so that it can't be booked here",
            account=self.acquirer,
        )
        said = {Stands.OVER: "", Stands.GIVEN_UP: str(GIVEN_UP)}.get(stand, str(why))
        self._put(one, stand, since, said, self.now)

    def _stand(self, one: One, heard: Heard) -> Stands:
        stand, end = stands(one, heard, now=self.now), self.kind.given_up_after
        if stand is not Stands.UNKNOWN or one.alarmed_at is None or end is None or not heard.is_whole:
            return stand
        return Stands.GIVEN_UP if self.now - one.last_at >= end else stand

    def _why(self, stand: Stands, since: datetime | None, heard: Heard) -> str:
        """Why an operator is told of it; empty if it is none of their business."""
        if stand is Stands.UNKNOWN:
            return why_unknown(heard, self.kind.nobody_knows)
        if stand is Stands.GIVEN_UP:
            return GIVEN_UP
        if since is not None and self.now - since >= UNBOOKED:
            return noted("another cell has its payment, and has not booked it for a day: see whether it reads there")
        return ""

    def _put(self, one: One, stand: Stands, since: datetime | None, why: str, next_at: datetime) -> None:
        alarmed_at = (one.alarmed_at or self.now) if why else None
        if why and one.alarmed_at is None:
            self.alarms.append(self.kind.alarm_of(one, why))
        elif not why and (one.alarmed_at is not None or stand is Stands.OVER):
            # Of what is over an alarm may be from when it was known here.
            self.mended.append(one.acquirer_reference)
        if stand is Stands.OVER:
            later = None if self.kind.again_over is None else self.now + self.kind.again_over
        else:
            later = None if stand is Stands.GIVEN_UP else next_at
        nowhere_since = one.unheard_since(self.now) if stand in _NOWHERE else self.now
        reason = why or _WHAT_FOR[stand]
        self.stood[one.acquirer_reference] = Stood(stand, reason, later, nowhere_since, since, alarmed_at)

    async def write(self, connection: Connection) -> None:
        """Write it down."""
        if not self.stood:
            return
        await self.kind.try_later(connection, self.acquirer, self.stood)
        await raise_alarms(connection, self.alarms, now=self.now)
        mended = noted("another cell knows it")
        await settle(connection, self.kind, self.acquirer, self.mended, by=mended, now=self.now)


_WHAT_FOR: Final = {
    Stands.WAITS: noted("no cell has said yet that it has its payment"),
    Stands.ELSEWHERE: noted("another cell has its payment, and has still to book it"),
    Stands.OVER: noted("another cell has booked it"),
    Stands.UNKNOWN: "",
    Stands.GIVEN_UP: "",
}


async def settle(
    connection: Connection, kind: Kind[One], acquirer: str, references: Sequence[str], *, by: str, now: datetime
) -> None:
    """An operator need not look after these any more."""
    if references:
        subjects = [kind.subject_of(acquirer, one) for one in references]
        await settle_alarms(connection, kind.alarm, subjects, shop=None, by=by, now=now)


async def wait_no_more(
    connection: Connection, kind: Kind[One], acquirer: str, references: Sequence[str], *, now: datetime
) -> None:
    """These are known here, and need nothing more: they wait no more, nor does an operator."""
    if not references:
        return
    waited = [one.acquirer_reference for one in await kind.wait_no_more(connection, acquirer, references)]
    await settle(connection, kind, acquirer, waited, by=noted("it was booked"), now=now)


async def try_all(
    due: Callable[[], Awaitable[list[One]]], try_again: Callable[[Sequence[One]], Awaitable[bool]]
) -> None:
    """Try all that wait once more, `MOST` at once, unless another cell does not answer (`try_again`
    says whether all have): each such question takes seconds.
    """
    for _ in range(MOST_BATCHES):
        waiting = await due()
        if not (waiting and await try_again(waiting) and len(waiting) == MOST):
            return


async def tell_untried(
    database: Database, kind: Kind[One], elsewhere: Any, *, reads: Sequence[str], now: datetime
) -> None:
    """Tell an operator, once, of what nobody here has tried for long: its account is read no more.

    What another cell has booked since is over, and so is what an operator was told of it. What was
    told of an account that this process `reads` is tried by its readings.
    """
    untried = await kind.untried(database, before=now - UNREAD, reads=reads, most=MOST)
    if not untried:
        return
    asked, heard = {(one.acquirer, one.acquirer_reference) for one in untried}, await kind.heard_of(elsewhere, untried)
    async with database.acquire() as connection, connection.transaction():
        # Another worker may have told of some meanwhile.
        still = await kind.untried(connection, before=now - UNREAD, reads=reads, most=MOST)
        for account, those in _by_account([one for one in still if (one.acquirer, one.acquirer_reference) in asked]):
            later = Later(kind, account, now)
            for one in those:
                later.unread(one, heard)
            await later.write(connection)


def _by_account(waiting: Sequence[One]) -> list[tuple[str, list[One]]]:
    accounts = sorted({one.acquirer for one in waiting})
    return [(account, [one for one in waiting if one.acquirer == account]) for account in accounts]
