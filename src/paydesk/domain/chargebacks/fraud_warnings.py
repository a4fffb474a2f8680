"""Early fraud warnings: a payment that its card's issuer holds for fraud is an alarm once, and a
line on its merchant's page of it, while it may still be refunded before it becomes a chargeback.

Each look reads the acquirer's list anew, so that nothing hangs on what an earlier one came to. What
has grown older than it reaches back is settled by our own books. Moves no money.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import structlog

from paydesk.adapters.acquirers.fraud_warnings import FraudWarning, fraud_warnings_of
from paydesk.core.clock import utc_now
from paydesk.core.wording import noted
from paydesk.database.pool import AWAY, Database
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.domain.acquirers.other_cells import storable_name
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms
from paydesk.domain.alarms.setting_aside import reason_of
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.loops.hanging import LONG_READING
from paydesk.loops.repeating import repeat

queries = load_statements(__package__ or "", "fraud_warnings.sql")
log = structlog.get_logger()

PAUSE: Final = 600.0
"""Seconds between two looks: a chargeback follows within days or weeks."""
BACK: Final = timedelta(days=30)
"""How far back each look goes: a worker that was away for less misses none."""

_AVERTED: Final = noted("the payment was refunded or disputed")


@dataclass(frozen=True, slots=True)
class _Warned:
    """A payment of which the warning at a place (from 1) is."""

    merchant_id: int
    live: bool
    payment_id: int
    place: int
    is_open: bool | None
    is_over: bool

    @property
    def subject(self) -> str:
        return _subject(self.payment_id)


async def run_fraud_warnings(desk: Desk, stop: asyncio.Event) -> None:
    """Look for fraud warnings until told to stop."""
    unread: dict[str, str] = {}

    async def look() -> None:
        await read_fraud_warnings(desk, now=utc_now(), unread=unread)

    await repeat("fraud warnings", look, stop, rest=PAUSE, due=True, patience=LONG_READING)


async def read_fraud_warnings(desk: Desk, *, now: datetime, unread: dict[str, str]) -> None:
    """Raise an alarm for each payment of ours that an issuer has warned of, once, and settle those
    whose payments were refunded or disputed since.

    Any number of workers may read the same.

    Args: now is real time (UTC); unread keeps why an acquirer could not be read, which is logged
        when that changes: many a key may never read warnings.
    """
    over: list[_Warned] = []
    for name in desk.acquirers:
        try:
            told = await fraud_warnings_of(desk.acquirers[name], now - BACK)
            over += await _record(desk.database, name, told, now=now)
        except AWAY:
            raise
        except Exception as error:
            # An answer that makes no sense keeps nobody from the other acquirers.
            if unread.get(name) != (why := reason_of(error)):
                unread[name] = why
                log.warning("an acquirer's fraud warnings can't be read", acquirer=name, why=why)
        else:
            unread.pop(name, None)
    await queries.settle_averted(
        desk.database,
        merchant_ids=[one.merchant_id for one in over],
        lives=[one.live for one in over],
        subjects=[one.subject for one in over],
        by=str(_AVERTED),
        now=now,
    )


async def is_warned_of(database: Database, shop: Shop, payment_id: int) -> bool:
    """Whether a card's issuer holds a payment for fraud, and it was neither refunded nor disputed
    since.
    """
    asked = {"merchant_id": shop.merchant_id, "live": shop.live, "subject": _subject(payment_id)}
    return bool(await queries.is_warned_of(database, **asked, by=str(_AVERTED)))


async def _record(database: Database, acquirer: str, told: Sequence[FraudWarning], *, now: datetime) -> list[_Warned]:
    """Raise alarms on what is new; which of the others nothing can be averted of any more."""
    if not told:
        return []
    keys, tags = [storable_name(one.of_key) for one in told], [storable_name(one.of_merchant) for one in told]
    untold = [key for key, tag in zip(keys, tags, strict=True) if not tag]
    found = await records_of(
        _Warned, queries.warned_payments(database, keys=keys, tags=tags, untold=untold, acquirer=acquirer)
    )
    # An issuer may warn of a payment twice: it is averted for both, or for none.
    over = [one for one in found if one.is_over or not told[one.place - 1].may_be_averted]
    gone = {one.subject for one in over}
    new = [one for one in found if one.is_open is None and one.subject not in gone]
    await raise_alarms(database, [_alarm(one, acquirer, told[one.place - 1]) for one in new], now=now)
    return [one for one in over if one.is_open]


def _subject(payment_id: int) -> str:
    return f"payment {payment_id}"


def _alarm(one: _Warned, acquirer: str, warning: FraudWarning) -> Alarm:
    why = noted("its card's issuer holds it for fraud: %(kind)s", kind=warning.kind)
    details = {"acquirer": acquirer, "reference": warning.reference, "reason": warning.kind}
    return Alarm(AlarmKind.fraud_warned, one.subject, why, Shop(one.merchant_id, one.live), details)
