"""Looks at the payment page again and again, as customers get it,
and says when it is not what was built.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from prometheus_client import Gauge

from paydesk.core.clock import utc_now
from paydesk.core.wording import noted
from paydesk.database.pool import Database
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms, settle_alarms
from paydesk.loops.repeating import repeat
from paydesk.web.checkout.page_comparing import Fetch, NotReached, differences, fetch

log = structlog.get_logger()

DIFFERS = Gauge(
    "paydesk_payment_page_differs",
    "1 if the payment page, as it comes from the public address, is not what was built, else 0",
    multiprocess_mode="mostrecent",
)
UNSEEN = Gauge(
    "paydesk_payment_page_unseen_seconds",
    "For how long the payment page was not fetched from the public address and compared",
    multiprocess_mode="mostrecent",
)

FIRST_LOOK = timedelta(minutes=2)
"""After the start: the service itself may just be starting."""

SECOND_LOOK = timedelta(minutes=5)
"""When a page that differs, or can't be reached, is looked at again:
one release may just be followed by another."""

_ABOUT = "payment page"


@dataclass(slots=True)
class PageWatch:
    """What this process knows of the payment page at a public address;
    `seen` is when it last saw it, or began.
    """

    address: str
    every: timedelta
    due: datetime
    seen: datetime
    differed: bool = False

    async def look(self, database: Database, *, now: datetime, get: Fetch = fetch) -> None:
        """Compare if it is time; what differs twice in a row is an alarm, which settles itself.
        `now` is real time.
        """
        UNSEEN.set((now - self.seen).total_seconds())
        if now < self.due:
            return
        try:
            found = await differences(self.address, get)
        except NotReached as error:
            self.due = now + SECOND_LOOK
            log.warning("the payment page could not be compared", why=str(error))
            return
        self.seen = now
        self.due = now + (SECOND_LOOK if found else self.every)
        if found and self.differed:
            DIFFERS.set(1)
            await raise_alarms(database, [Alarm(AlarmKind.page_differs, _ABOUT, "; ".join(found))], now=now)
        if not found:
            DIFFERS.set(0)
            await settle_alarms(
                database,
                AlarmKind.page_differs,
                [_ABOUT],
                shop=None,
                by=noted("the page is what was built"),
                now=now,
            )
        self.differed = bool(found)


async def run_page_watch(address: str, every: timedelta, database: Database, stop: asyncio.Event) -> None:
    """Look at the payment page every so often until told to stop."""
    now = utc_now()
    watch = PageWatch(address, every, due=now + FIRST_LOOK, seen=now)

    async def look() -> None:
        await watch.look(database, now=utc_now())

    await repeat("payment page", look, stop, rest=10.0)
