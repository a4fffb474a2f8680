"""Refunds that failed and are not known in this cell: how those wait, and what an operator is told.
Moves no money.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Final, TypeAlias

import msgspec

from paydesk.adapters.acquirers.disputes import FailedRefund
from paydesk.core.storable import storable_json
from paydesk.core.wording import noted
from paydesk.database.records import records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.acquirers.other_cells import MOST, Elsewhere, Heard, Known, may_be_ours, storable_name
from paydesk.domain.acquirers.waiting import KEPT, Kind, Reference, Waiting, columns_of
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.found_movements import is_by_hand, key_of

queries = load_statements(__package__ or "", "waiting_refunds.sql")

AskedRefund: TypeAlias = str
"""The key under which an acquirer was asked for it."""


@dataclass(frozen=True)
class WaitingRefund(Waiting):
    """A failed refund that waits, as it was told."""

    @cached_property
    def refund(self) -> FailedRefund:
        """The refund."""
        return msgspec.json.decode(self.told, type=FailedRefund, strict=False)

    @property
    def known_by(self) -> str:
        """By its key every cell knows it."""
        return self.refund.key

    @property
    def may_be_in_no_books(self) -> bool:
        """Whether it was made in the acquirer's own pages: of one that failed before a comparison
        took it into the books nothing comes back.

        But a comparison that read of it before that may take it into them still.
        """
        return is_by_hand(self.refund.key)


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


async def known_here(database: Connection, keys: Collection[AskedRefund]) -> list[Known]:
    """Those of these keys under which this cell has a refund."""
    return await records_of(Known, queries.known(database, keys=list(keys)))


async def heard_of(elsewhere: Elsewhere[AskedRefund], waiting: Sequence[WaitingRefund]) -> Heard:
    """What other cells say of those that are not known here. What can be no key of ours is asked of
    nobody.
    """
    if not waiting:
        return Heard()
    keys = {one.refund.key for one in waiting}
    return await elsewhere(sorted(key for key in keys if may_be_ours(key)))


async def untried(database: Connection, *, before: datetime, reads: Sequence[str], most: int) -> list[WaitingRefund]:
    """Those that nobody has tried since, and of which no operator was told."""
    return await records_of(WaitingRefund, queries.untried(database, before=before, reads=list(reads), most=most))


REFUNDS: Final = Kind(
    alarm=AlarmKind.refund_unknown,
    alarm_of=lambda one, why: alarm_of(one.acquirer, one.refund, why),
    subject_of=lambda _acquirer, reference: reference,
    nobody_knows=noted("nobody knows of it; a second charge that was undone may be the customer's loss again"),
    try_later=lambda connection, acquirer, stood: queries.try_later(connection, acquirer=acquirer, **columns_of(stood)),
    wait_no_more=lambda connection, acquirer, references: records_of(
        Reference, queries.wait_no_more(connection, acquirer=acquirer, references=list(references))
    ),
    untried=untried,
    heard_of=heard_of,
)
"""How failed refunds wait."""


def storable(refund: FailedRefund) -> FailedRefund:
    """A refund by a name that PostgreSQL stores and finds, under its key in our books."""
    return replace(refund, reference=storable_name(refund.reference), key=key_of(refund))


async def due(database: Connection, acquirer: str, *, now: datetime) -> list[WaitingRefund]:
    """Those that are to be tried again, as many as are at once: those first that were tried the
    least, so that what nobody ever knows keeps nothing new waiting.
    """
    return await records_of(WaitingRefund, queries.due(database, acquirer=acquirer, now=now, most=MOST))


async def keep(connection: Connection, acquirer: str, refunds: Sequence[FailedRefund], *, now: datetime) -> None:
    """Have refunds wait that are not known here, or can't be booked yet;
    one that is told twice waits once.
    """
    told = {one.reference: storable_json(msgspec.to_builtins(one)) for one in refunds}
    if told:
        about = {"references": list(told), "told": list(told.values())}
        await queries.keep(connection, acquirer=acquirer, **about, now=now)


async def forget(connection: Connection, *, now: datetime) -> None:
    """Forget those that are over, or with an operator, and not told any more."""
    await queries.forget(connection, told_before=now - KEPT)
