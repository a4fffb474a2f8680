"""An approval that turned up for an attempt that was given up is undone, in full and at once,
so that no customer pays twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from paydesk.adapters.acquirers.interface import AcquirerRefused, Approved, OutcomeUnknown, UnderWay, Voided
from paydesk.database.statements import load_statements
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments import metrics
from paydesk.domain.payments.desk import Desk

queries = load_statements(__package__ or "")
log = structlog.get_logger()

UNDONE_BY = timedelta(minutes=1)
"""When the janitor goes on with an undoing whose answer nobody has written down."""


@dataclass(frozen=True, slots=True)
class GivenUp:
    """An attempt that was given up, and whose approval is undone; `key` is its own."""

    shop: Shop
    attempt_id: int
    key: str
    acquirer: str


async def undo(desk: Desk, attempt: GivenUp, approved: Approved | None, *, now: datetime) -> bool:
    """Commit to undoing the approval, call, record; true once it is done. Moves money (back).

    `approved` is None if somebody has committed to it before; `now` is real time, UTC.
    """
    shop, attempt_id = attempt.shop, attempt.attempt_id
    names = {"merchant_id": shop.merchant_id, "live": shop.live, "attempt_id": attempt_id}
    if approved is not None:
        begun = await queries.begin_void(
            desk.database, **names, acquirer_reference=approved.reference, lookup_at=now + UNDONE_BY, now=now
        )
        if begun is None:
            return False
        metrics.LATE_APPROVALS.inc()
        log.error("an approval turned up for an attempt that was given up; voiding it", **names)
    try:
        finding = await desk.acquirers[attempt.acquirer].undo(f"{attempt.key}:void", attempt.key)
    except OutcomeUnknown as error:
        log.error("a late approval could not be voided yet", **names, why=str(error))
        return False
    except AcquirerRefused as error:
        why = f"its late approval can't be undone, the customer has paid twice: {error}"
        alarm = Alarm(AlarmKind.contradiction, f"attempt {attempt_id}", why, shop)
        await raise_alarms(desk.database, [alarm], now=now)
        return False
    if isinstance(finding, UnderWay):
        return False
    if not isinstance(finding, Voided):
        # It was approved, or nobody would undo it: who knows of nothing has undone nothing.
        why = f"its late approval is to be undone, and the acquirer says {type(finding).__name__} of it"
        alarm = Alarm(AlarmKind.contradiction, f"attempt {attempt_id}", why, shop)
        await raise_alarms(desk.database, [alarm], now=now)
        return False
    return await queries.record_void(desk.database, **names, now=now) is not None
