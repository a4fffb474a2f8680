"""A merchant's test clock: how far its test side runs ahead of real time, and who may move it.
Live data has none.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, NotFound
from paydesk.core.wording import plural
from paydesk.database.pool import AWAY, Database
from paydesk.database.records import record_if_any
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.cells.fencing import Fenced, require_unfenced
from paydesk.domain.merchants.shop import Shop
from paydesk.loops.repeating import renewed

queries = load_statements(__package__ or "", "test_clock.sql")

LEASE = timedelta(seconds=10)
"""How long a clock stays held after its holder has died."""

RENEWAL_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class TestClock:
    """A test clock: its side's time `now` (UTC), which is `ahead` of real time;
    `moving` while somebody moves it.
    """

    __test__ = False

    merchant_id: int
    now: datetime
    ahead: timedelta
    time_zone: str
    moving: bool


@dataclass(frozen=True, slots=True)
class _Row:
    ahead: timedelta
    time_zone: str


@dataclass(frozen=True, slots=True)
class _Seen(_Row):
    held: bool


async def read_clock(database: Database, merchant_id: int, *, real_now: datetime) -> TestClock:
    """The merchant's test clock.

    Raises: NotFound if there is no such merchant.
    """
    row = record_if_any(_Seen, await queries.read_clock(database, merchant_id=merchant_id))
    if row is None:
        raise _no_merchant(merchant_id)
    return TestClock(merchant_id, real_now + row.ahead, row.ahead, row.time_zone, row.held)


async def shop_time(database: Database, shop: Shop, *, real_now: datetime) -> datetime:
    """A shop's time: real time, and for a test side its clock on top.

    Raises: NotFound if there is no such merchant.
    """
    return real_now if shop.live else (await read_clock(database, shop.merchant_id, real_now=real_now)).now


class HeldClock:
    """A clock that this process alone moves, for as long as it holds it;
    `start` is the side's time when it began.
    """

    def __init__(self, database: Database, merchant_id: int, holder: str, start: datetime, time_zone: str) -> None:
        self.merchant_id = merchant_id
        self.start = start
        self.time_zone = time_zone
        self.holder = holder
        self._database = database

    async def move_to(self, at: datetime, *, on: Connection | None = None) -> datetime:
        """Make `at` (UTC) the test side's time, or leave it where it is if it is later;
        returns the side's time. In the transaction `on`, if there is one.

        Raises: Conflict if the clock was lost to somebody else.
        """
        real_now, database = utc_now(), on or self._database
        ahead = await queries.move_clock(
            database, merchant_id=self.merchant_id, holder=self.holder, at=at, real_now=real_now, lease=LEASE
        )
        if ahead is None:
            raise Conflict(f"somebody else moves the test clock of merchant {self.merchant_id} now; this one stopped")
        return real_now + timedelta(seconds=ahead.total_seconds())

    async def keep(self) -> None:
        """Renew the hold; if the database is away, the next move finds out what came of it."""
        await queries.hold_clock(self._database, merchant_id=self.merchant_id, holder=self.holder, lease=LEASE)


@asynccontextmanager
async def held_clock(database: Database, merchant_id: int) -> AsyncIterator[HeldClock]:
    """Hold a merchant's test clock for the length of a block, so that nobody else moves
    or resets it.

    Raises: NotFound if there is no such merchant; Conflict if somebody else holds it; Fenced if the
        merchant goes to another cell, which would wait for it.
    """
    await require_unfenced(database, merchant_id)
    holder, real_now = secrets.token_hex(8), utc_now()
    row = record_if_any(_Row, await queries.hold_clock(database, merchant_id=merchant_id, holder=holder, lease=LEASE))
    if row is None:
        await read_clock(database, merchant_id, real_now=real_now)
        raise Conflict(
            plural(
                "the test clock of merchant %(merchant_id)s is being moved; wait until that is done (or %(count)s "
                "second, if it was killed)",
                "the test clock of merchant %(merchant_id)s is being moved; wait until that is done (or %(count)s "
                "seconds, if it was killed)",
                merchant_id=merchant_id,
                count=LEASE.seconds,
            )
        )
    clock = HeldClock(database, merchant_id, holder, real_now + row.ahead, row.time_zone)
    try:
        async with renewed("hold on a test clock", clock.keep, every=RENEWAL_SECONDS):
            yield clock
    finally:
        with suppress(*AWAY, Fenced):
            await queries.let_clock_go(database, merchant_id=merchant_id, holder=holder)


def _no_merchant(merchant_id: int) -> NotFound:
    return NotFound(f"there is no merchant {merchant_id}; see: paydesk merchant list")
