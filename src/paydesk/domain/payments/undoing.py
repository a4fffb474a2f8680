"""An approval that turned up for an attempt that was given up is undone, in full and at once,
so that no customer pays twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

import structlog

from paydesk.adapters.acquirers.interface import AcquirerRefused, Approved, OutcomeUnknown, UnderWay, Voided
from paydesk.core.wording import noted
from paydesk.database.statements import load_statements
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments import metrics
from paydesk.domain.payments.desk import Desk

queries = load_statements(__package__ or "", "undoing.sql")
log = structlog.get_logger()

UNDONE_BY = timedelta(minutes=1)
"""When the janitor goes on with an undoing whose answer nobody has written down."""


class Undone(StrEnum):
    """What came of undoing an approval."""

    DONE = "done"
    """It is undone, and recorded so."""
    OPEN = "open"
    """Nobody knows yet, or it is under way: it is asked for again soon."""
    REFUSED = "refused"
    """The acquirer will not: that is an alarm, and it is asked for again more rarely."""


@dataclass(frozen=True, slots=True)
class GivenUp:
    """An attempt that was given up, and whose approval is undone; `key` is its own."""

    shop: Shop
    attempt_id: int
    key: str
    acquirer: str


async def undo(desk: Desk, attempt: GivenUp, approved: Approved | None, *, now: datetime) -> Undone:
    """Commit to undoing the approval, call, record. Moves money (back).

    What was kept on a page of the acquirer's goes with it: nobody will be charged by it.
    `approved` is None if somebody has committed to it before; `now` is real time, UTC.
    """
    shop, attempt_id = attempt.shop, attempt.attempt_id
    names = {"merchant_id": shop.merchant_id, "live": shop.live, "attempt_id": attempt_id}
    if approved is not None:
        begun = await queries.begin_void(
            desk.database,
            **names,
            acquirer_reference=approved.reference,
            kept=_kept(approved),
            lookup_at=now + UNDONE_BY,
            now=now,
        )
        if begun is None:
            return Undone.OPEN
        metrics.LATE_APPROVALS.inc()
        log.error("an approval turned up for an attempt that was given up; voiding it", **names)
    try:
        finding = await desk.acquirers[attempt.acquirer].undo(f"{attempt.key}:void", attempt.key)
    except OutcomeUnknown as error:
        log.error("a late approval could not be voided yet", **names, why=str(error))
        return Undone.OPEN
    except AcquirerRefused as error:
        await _refused(
            desk,
            attempt,
            noted("its late approval can't be undone, the customer has paid twice: %(error)s", error=error),
            now,
        )
        return Undone.REFUSED
    if isinstance(finding, UnderWay):
        return Undone.OPEN
    if not isinstance(finding, Voided):
        # It was approved, or nobody would undo it: who knows of nothing has undone nothing.
        said = type(finding).__name__
        await _refused(
            desk,
            attempt,
            noted("its late approval is to be undone, and the acquirer says %(said)s of it", said=said),
            now,
        )
        return Undone.REFUSED
    # Somebody else who recorded it at the same moment has done so, too.
    await queries.record_void(desk.database, **names, now=now)
    return Undone.DONE


def _kept(approved: Approved) -> str:
    """What the acquirer keeps what was paid with under, empty if it does not."""
    instrument = approved.instrument
    return (instrument.reference if instrument is not None else "") or approved.network_reference


def subject_of(attempt_id: int) -> str:
    """What an attempt is called in the operator's list."""
    return f"attempt {attempt_id}"


async def _refused(desk: Desk, attempt: GivenUp, why: str, now: datetime) -> None:
    """Tell an operator that it is not undone, and what ends it."""
    ends = noted(
        "It is tried again, ever more rarely. Once its customer has the money in another way: paydesk undo %(key)s "
        '--acquirer %(acquirer)s --settled "how"',
        key=attempt.key,
        acquirer=attempt.acquirer,
    )
    alarm = Alarm(AlarmKind.contradiction, subject_of(attempt.attempt_id), f"{why}. {ends}", attempt.shop)
    await raise_alarms(desk.database, [alarm], now=now)
