"""Refunds that failed and are not known in this cell: where cells share an account, each reads all
that its list has.

Such a one waits, and is tried again, since its merchant may come here before the other cell has
booked it. The other cells are asked for it: it is over once one of them has booked it, and an
operator hears of it if none knows it. Moves no money.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import Enum
from functools import cached_property
from hashlib import sha256
from typing import Final, TypeAlias

import msgspec

from paydesk.adapters.acquirers.disputes import FailedRefund
from paydesk.core.storable import storable_json
from paydesk.core.wording import noted
from paydesk.database.records import records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.acquirers.trying_again import pause
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms, settle_alarms
from paydesk.domain.merchants.shop import Shop

queries = load_statements(__package__ or "", "waiting_refunds.sql")

MOST: Final = 100
"""How many are tried again, and asked for, in one reading."""

ON_THE_WAY: Final = timedelta(minutes=10)
"""For how long no cell may know a refund, since its merchant may be between two, before an operator
hears of it."""

SILENT: Final = timedelta(hours=6)
"""For how long a cell that may know it may not answer, before an operator hears of that."""

KEPT: Final = timedelta(days=60)
"""How long after it was last told one is forgotten that is over, or with an operator: the longest
for which an acquirer tells the same again."""

_LONGEST_KEY: Final = 200
_LONGEST_REFERENCE: Final = 200


@dataclass(frozen=True, slots=True)
class KnownRefund:
    """A key under which a cell has a refund; `is_over` if it has written down that it failed."""

    key: str
    is_over: bool


@dataclass(frozen=True, slots=True)
class Heard:
    """What the other cells say of refunds; `silent` are the numbers of those that did not answer,
    and `has_others` is false where this one is alone.
    """

    known: tuple[KnownRefund, ...] = ()
    silent: tuple[int, ...] = ()
    has_others: bool = True


Elsewhere: TypeAlias = Callable[[Sequence[str]], Awaitable[Heard]]
"""Asks all other cells at once under which of these keys, `MOST` at most, they have refunds; who
does not answer in time is silent."""


async def alone(_keys: Sequence[str]) -> Heard:
    """There is no other cell."""
    return Heard(has_others=False)


async def known_here(database: Connection, keys: Collection[str]) -> list[KnownRefund]:
    """Those of these keys under which this cell has a refund."""
    return await records_of(KnownRefund, queries.known(database, keys=list(keys)))


@dataclass(frozen=True)
class Waiting:
    """A failed refund that waits, as it was told. Times are UTC: `nowhere_since` is since when no
    cell has said that it has it, `alarmed_at` when an operator was told so, None if not.
    """

    told: str
    acquirer_reference: str
    nowhere_since: datetime
    tries: int
    alarmed_at: datetime | None

    @cached_property
    def refund(self) -> FailedRefund:
        """The refund."""
        return msgspec.json.decode(self.told, type=FailedRefund, strict=False)


@dataclass(frozen=True, slots=True)
class _Times:
    """When one is tried again (None: it is over), since when no cell has said that it has it, and
    since when an operator is told of that.
    """

    next_at: datetime | None
    nowhere_since: datetime
    alarmed_at: datetime | None


@dataclass(frozen=True, slots=True)
class _Reference:
    acquirer_reference: str


class Stands(Enum):
    """How one stands that is not known here."""

    WAITS = "waits"
    """It may be on its way between two cells, or who may have it does not answer."""
    ELSEWHERE = "elsewhere"
    """Another cell has it, and has still to book that it failed."""
    OVER = "over"
    """Another cell has booked it."""
    UNKNOWN = "unknown"
    """No cell has it that could be asked."""


def stands(waiting: Waiting, heard: Heard, *, now: datetime) -> Stands:
    """How one stands by what the other cells say. Pure."""
    said = [one.is_over for one in heard.known if one.key == waiting.refund.key]
    if said:
        return Stands.OVER if any(said) else Stands.ELSEWHERE
    grace = SILENT if heard.silent else ON_THE_WAY if heard.has_others else timedelta(0)
    is_told = waiting.alarmed_at is not None
    return Stands.UNKNOWN if is_told or now - waiting.nowhere_since >= grace else Stands.WAITS


def alarm_of(acquirer: str, failed: FailedRefund, why: str, shop: Shop | None = None) -> Alarm:
    """The alarm for a refund that is not ours as its acquirer tells it."""
    told_as = noted(
        "%(amount)s %(currency)s came back to %(acquirer)s (%(reason)s)",
        amount=failed.amount,
        currency=failed.currency,
        acquirer=acquirer,
        reason=failed.reason,
    )
    details = {"acquirer": acquirer, "key": failed.key, "reason": failed.reason}
    return Alarm(AlarmKind.refund_unknown, failed.reference, f"{told_as}: {why}", shop, details)


def _why_unknown(heard: Heard) -> str:
    if heard.silent:
        return noted(
            "nobody knows of it, as far as the other cells can be asked: of cell %(cells)s there was no answer for "
            "hours",
            cells=", ".join(map(str, heard.silent)),
        )
    return noted("nobody knows of it; a second charge that was undone may be the customer's loss again")


async def heard_of(elsewhere: Elsewhere, waiting: Sequence[Waiting]) -> Heard:
    """What other cells say of those that are not known here. What can be no key of ours, since
    anybody may write one at an acquirer, is asked of nobody.
    """
    if not waiting:
        return Heard()
    keys = {one.refund.key for one in waiting}
    return await elsewhere(sorted(key for key in keys if _may_be_ours(key)))


def _may_be_ours(key: str) -> bool:
    return key.isascii() and key.isprintable() and 0 < len(key) <= _LONGEST_KEY


def storable(refund: FailedRefund) -> FailedRefund:
    """A refund by a name that PostgreSQL stores and finds, whatever its acquirer calls it."""
    name = refund.reference.replace("\x00", "\ufffd")
    if len(name) > _LONGEST_REFERENCE:
        # Two long ones may begin alike.
        name = name[: _LONGEST_REFERENCE // 2] + sha256(name.encode()).hexdigest()
    return replace(refund, reference=name)


async def due(database: Connection, acquirer: str, *, now: datetime) -> list[Waiting]:
    """Those that are to be tried again, as many as one reading takes: those first that were tried
    the least, so that what nobody ever knows keeps nothing new waiting.
    """
    return await records_of(Waiting, queries.due(database, acquirer=acquirer, now=now, most=MOST))


async def keep(connection: Connection, acquirer: str, refunds: Sequence[FailedRefund], *, now: datetime) -> None:
    """Have refunds wait that are not known here; one that is told twice waits once."""
    told = {one.reference: storable_json(msgspec.to_builtins(one)) for one in refunds}
    if told:
        about = {"references": list(told), "told": list(told.values())}
        await queries.keep(connection, acquirer=acquirer, **about, now=now)


async def wait_no_more(connection: Connection, acquirer: str, references: Sequence[str], *, now: datetime) -> None:
    """These are known here: they wait no more, nor does an operator."""
    if not references:
        return
    rows = queries.wait_no_more(connection, acquirer=acquirer, references=list(references))
    waited = [one.acquirer_reference for one in await records_of(_Reference, rows)]
    await _settle(connection, waited, noted("it was booked"), now=now)


async def forget(connection: Connection, acquirer: str, *, now: datetime) -> None:
    """Forget those that are over, or with an operator, and not told any more."""
    await queries.forget(connection, acquirer=acquirer, told_before=now - KEPT)


@dataclass(slots=True)
class Later:
    """Those that go on waiting after they were tried, and what an operator is told of that."""

    acquirer: str
    now: datetime
    times: dict[str, _Times] = field(default_factory=dict)
    alarms: list[Alarm] = field(default_factory=list)
    mended: list[str] = field(default_factory=list)

    def again(self, one: Waiting) -> None:
        """It is known here, and could not be tried to its end."""
        self.times[one.acquirer_reference] = _Times(self.now + pause(one.tries), self.now, one.alarmed_at)

    def judged(self, one: Waiting, heard: Heard) -> None:
        """It is not known here, and this is what the other cells say."""
        stand = stands(one, heard, now=self.now)
        alarmed_at = (one.alarmed_at or self.now) if stand is Stands.UNKNOWN else None
        if one.alarmed_at is None and alarmed_at is not None:
            self.alarms.append(alarm_of(self.acquirer, one.refund, _why_unknown(heard)))
        elif one.alarmed_at is not None and alarmed_at is None:
            self.mended.append(one.acquirer_reference)
        next_at = None if stand is Stands.OVER else self.now + pause(one.tries)
        nowhere_since = one.nowhere_since if stand in {Stands.WAITS, Stands.UNKNOWN} else self.now
        self.times[one.acquirer_reference] = _Times(next_at, nowhere_since, alarmed_at)

    async def write(self, connection: Connection) -> None:
        """Write it down."""
        if not self.times:
            return
        await queries.try_later(
            connection,
            acquirer=self.acquirer,
            references=list(self.times),
            next_ats=[one.next_at for one in self.times.values()],
            nowhere_sinces=[one.nowhere_since for one in self.times.values()],
            alarmed_ats=[one.alarmed_at for one in self.times.values()],
        )
        await raise_alarms(connection, self.alarms, now=self.now)
        await _settle(connection, self.mended, noted("another cell knows it"), now=self.now)


async def _settle(connection: Connection, references: Sequence[str], by: str, *, now: datetime) -> None:
    if references:
        await settle_alarms(connection, AlarmKind.refund_unknown, references, shop=None, by=by, now=now)
