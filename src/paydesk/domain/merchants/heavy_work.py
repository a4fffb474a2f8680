"""Heavy work that people ask for: how much of it a person, owner,
side of a merchant or address has under way at once.

Counted in the database, so over all processes. Moves no money.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from prometheus_client import Counter

from paydesk.core.errors import TooMany
from paydesk.core.wording import worded
from paydesk.database.pool import AWAY, Database
from paydesk.database.statements import load_statements
from paydesk.domain.merchants.shop import Shop
from paydesk.loops.repeating import renewed

queries = load_statements(__package__ or "", "heavy_work.sql")

LEASE = timedelta(seconds=30)
"""How long a share stays taken after the process that worked has died."""

_RENEWAL_SECONDS = 10.0
_RETRY_AFTER = 10

REFUSED = Counter("paydesk_shares_refused_total", "Work that somebody has too much of under way", ["work"])


class Work(StrEnum):
    """What has shares."""

    EXPORT = "export"
    TEST_CLOCK = "test_clock"


@dataclass(frozen=True, slots=True)
class Most:
    """How much may be under way at once; a side's clock is moved by one
    at a time anyway (test_clock.py).
    """

    person: int
    owner: int
    side: int
    address: int


MOST = {
    Work.EXPORT: Most(person=2, owner=4, side=4, address=8),
    Work.TEST_CLOCK: Most(person=2, owner=2, side=2, address=4),
}

_TOO_MANY = {
    Work.EXPORT: worded("too many files of yours are still being fetched; wait until one is there, and try again"),
    Work.TEST_CLOCK: worded("too many test clocks of yours are being moved; wait until one has arrived, and try again"),
}


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks, as far as it is known; the owner is found by the shop."""

    address: str
    shop: Shop | None = None
    person_id: int | None = None


@dataclass(frozen=True, slots=True)
class WorkShare:
    """Work that may be done: within `held`, or the share is free again soon."""

    database: Database
    id: int

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Do the work within a block."""
        try:
            async with renewed("share of work", self._keep, every=_RENEWAL_SECONDS):
                yield
        finally:
            with suppress(*AWAY):
                await queries.let_share_go(self.database, id=self.id)

    async def _keep(self) -> None:
        await queries.keep_share(self.database, id=self.id, lease=LEASE)


async def take_share(database: Database, work: Work, asker: Asker) -> WorkShare:
    """Take a share of some work.

    Raises: TooMany if the person, the shop's owner, its side or the address has as much under way
        as it may.
    """
    most = MOST[work]
    limits = {f"address {asker.address}": most.address}
    if asker.person_id is not None:
        limits[f"person {asker.person_id}"] = most.person
    async with database.acquire() as connection, connection.transaction():
        if asker.shop is not None:
            limits[f"side {asker.shop.merchant_id} {'live' if asker.shop.live else 'test'}"] = most.side
            owner = await queries.owner_of(connection, merchant_id=asker.shop.merchant_id)
            if owner is not None:
                limits[f"owner {owner}"] = most.owner
        await queries.lock_shares(connection)
        await queries.forget_shares(connection, work=work)
        taken = await queries.take_share(
            connection, work=work, holders=list(limits), limits=list(limits.values()), lease=LEASE
        )
    if taken is None:
        REFUSED.labels(work).inc()
        raise TooMany(_TOO_MANY[work], retry_after=_RETRY_AFTER)
    return WorkShare(database, taken)
