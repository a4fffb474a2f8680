"""Raising and settling alarms: what can't be booked, what contradicts, what is held.

At most one alarm of a kind is open on one thing, so that what happens every minute is one line
that counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import structlog

from paydesk.core.storable import storable_json, storable_text
from paydesk.core.wording import noted
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.alarms import metrics
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.merchants.shop import Shop

queries = load_statements(__package__ or "")
log = structlog.get_logger()

NOBODY = Shop(0, live=True)
"""Where an alarm stands that concerns no merchant."""

QUIET = timedelta(hours=3)
"""What was set aside is tried at least every hour:
if it was not raised for so long, it went well since."""

LONGEST_REASON: Final = 1000
_LONGEST_SUBJECT = 200


@dataclass(frozen=True, slots=True)
class Alarm:
    """One thing that needs a person.

    `subject` names what it is about (`payment 13330`), `reason` says what is wrong and what to do,
    `shop` is None where no merchant is known; `details` are JSON and hold no secret and no
    personal value.
    """

    kind: AlarmKind
    subject: str
    reason: str
    shop: Shop | None = None
    details: Mapping[str, object] = field(default_factory=dict)

    @property
    def key(self) -> tuple[int, bool, str, str]:
        """What one open alarm is known by."""
        shop = self.shop or NOBODY
        return shop.merchant_id, shop.live, str(self.kind), storable_text(self.subject, longest=_LONGEST_SUBJECT)


@dataclass(frozen=True, slots=True)
class _Raised:
    merchant_id: int
    live: bool
    id: int
    kind: str
    subject: str
    reason: str
    times: int


@dataclass(frozen=True, slots=True)
class _Settled:
    id: int


@dataclass(frozen=True, slots=True)
class _Open:
    kind: str
    count: int


async def raise_alarms(database: Connection, alarms: Sequence[Alarm], *, now: datetime) -> None:
    """Put alarms into the operator's list; one that is open already counts up. Moves no money.

    Args: database may be a connection in the transaction of what is wrong; now is real time, never
        a test clock's.
    """
    if not alarms:
        return
    # One statement can't raise the same alarm twice: of those that are the same, the last one.
    by_key = dict(sorted({alarm.key: alarm for alarm in alarms}.items(), key=lambda item: item[0]))
    rows = queries.raise_alarms(
        database,
        merchant_ids=[key[0] for key in by_key],
        lives=[key[1] for key in by_key],
        kinds=[key[2] for key in by_key],
        subjects=[key[3] for key in by_key],
        reasons=[storable_text(alarm.reason, longest=LONGEST_REASON) for alarm in by_key.values()],
        details=[storable_json(alarm.details) for alarm in by_key.values()],
        now=now,
    )
    for row in await records_of(_Raised, rows):
        if row.times == 1:
            log.error(
                f"alarm: {row.kind}",
                alarm=row.id,
                merchant_id=row.merchant_id,
                live=row.live,
                subject=row.subject,
                why=row.reason,
            )


async def settle_alarms(
    database: Connection, kind: AlarmKind, subjects: Sequence[str], *, shop: Shop | None, by: str, now: datetime
) -> int:
    """Settle the open alarms of a kind on these things, because they mended themselves; how many.
    Moves no money.

    Args: by says what saw it, for example `disputes were read`; database and now as for
        `raise_alarms`.
    """
    asked = _settling(shop or NOBODY, kind, subjects, by)
    return len([row async for row in queries.settle_alarms(database, **asked, now=now)])


async def settle_all_but(
    database: Connection, kind: AlarmKind, subjects: Sequence[str], *, by: str, now: datetime
) -> int:
    """Settle the open alarms of a kind that concern no merchant, but for those on these things; how
    many. Moves no money.
    """
    asked = _settling(NOBODY, kind, subjects, by)
    return len([row async for row in queries.settle_all_but(database, **asked, now=now)])


def _settling(shop: Shop, kind: AlarmKind, subjects: Sequence[str], by: str) -> dict[str, object]:
    """Where alarms stand that are settled, or kept, and by what, in texts as they were stored."""
    return {
        "merchant_id": shop.merchant_id,
        "live": shop.live,
        "kind": str(kind),
        "subjects": [storable_text(subject, longest=_LONGEST_SUBJECT) for subject in subjects],
        "by": storable_text(by, longest=_LONGEST_SUBJECT),
    }


async def watch_alarms(database: Database, *, now: datetime) -> None:
    """Settle what mended itself, and measure how many alarms are open, by kind,
    for the operator.
    """
    rows = queries.settle_quiet(
        database,
        kind=str(AlarmKind.set_aside),
        quiet_since=now - QUIET,
        by=noted("it went well when tried again"),
        now=now,
    )
    for settled in await records_of(_Settled, rows):
        log.info("an alarm mended itself", alarm=settled.id)
    counts = {row.kind: row.count for row in await records_of(_Open, queries.count_open(database))}
    for kind in AlarmKind:
        metrics.OPEN.labels(str(kind)).set(counts.get(str(kind), 0))
