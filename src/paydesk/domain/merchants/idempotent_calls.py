"""Calls that carry an Idempotency-Key: each is made once,
and whoever repeats it gets the first answer again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from paydesk.core.errors import Conflict, Malformed
from paydesk.core.storable import refuse_card_number
from paydesk.database.pool import AWAY, Database
from paydesk.database.records import record_if_any
from paydesk.database.statements import load_statements
from paydesk.domain.merchants.shop import Shop
from paydesk.loops.repeating import renewed

queries = load_statements(__package__ or "", "idempotent_calls.sql")

KEPT = timedelta(days=7)
"""How long first answers are kept."""

LEASE = timedelta(seconds=30)
"""How long a call whose process died blocks its key; a living one renews this."""

RENEWAL = LEASE / 3
PATIENCE = 5.0
"""Seconds that a repeated call waits for the first one's answer."""

LONGEST_KEY = 255
MOST_FORGOTTEN = 10_000
_LOOK = 0.1


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """What a call was answered: the HTTP status and the body, JSON text."""

    status: int
    body: str


@dataclass(frozen=True, slots=True)
class ApiCall:
    """A call that only this process makes just now, under its merchant's key;
    `digest` stands for what it asks.
    """

    database: Database
    shop: Shop
    key: str
    digest: bytes

    @property
    def name(self) -> dict[str, object]:
        """Its primary key, as parameters."""
        return {"merchant_id": self.shop.merchant_id, "live": self.shop.live, "request_key": self.key}

    async def keep(self, answer: KeptAnswer) -> None:
        """Whoever repeats the call gets this answer.

        If the database is away, the lease runs out; a repeated call then finds by its key what
        was done.
        """
        with suppress(*AWAY):
            await queries.keep_answer(
                self.database, **self.name, request_digest=self.digest, status=answer.status, answer=answer.body
            )

    async def give_up(self) -> None:
        """There is no answer worth keeping; if the database is away, the lease runs out."""
        with suppress(*AWAY):
            await queries.give_up_call(self.database, **self.name, request_digest=self.digest)

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Renew the lease for the length of a block."""
        async with renewed("hold on a call", self._hold, every=RENEWAL.total_seconds()):
            yield

    async def _hold(self) -> None:
        await queries.hold_call(self.database, **self.name, lease=LEASE)


@dataclass(frozen=True, slots=True)
class _Begun:
    """A call that came before; without an answer while it is being made."""

    request_digest: bytes
    status: int | None
    answer: str | None


def check_request_key(key: str, name: str = "Idempotency-Key") -> str:
    """Check a caller's key, such as an Idempotency-Key: 1 to 255 visible ASCII characters.

    Raises: Malformed.
    """
    if not (0 < len(key) <= LONGEST_KEY and key.isascii() and key.isprintable() and " " not in key):
        raise Malformed(
            f"{name} needs 1 to {LONGEST_KEY} visible ASCII characters without spaces; take a UUID",
            name,
        )
    refuse_card_number(key, name)
    return key


async def begin_call(
    database: Database, shop: Shop, key: str, digest: bytes, *, real_now: datetime, patience: float = PATIENCE
) -> ApiCall | KeptAnswer:
    """Begin a call under its key, or learn what the same call was answered before.

    `digest` tells calls apart by all that they ask. A first call that still runs is waited for,
    `patience` seconds.
    Raises: Malformed if this can't be a key; Conflict if the key came with another call, or the
        first still runs.
    """
    call = ApiCall(database, shop, check_request_key(key), digest)
    until = time.monotonic() + patience
    while (begun := await _begin(call, real_now=real_now)) is None:
        if time.monotonic() > until:
            raise Conflict("the first request with this Idempotency-Key is still being made; ask again in a moment")
        await asyncio.sleep(_LOOK)
    return begun


async def _begin(call: ApiCall, *, real_now: datetime) -> ApiCall | KeptAnswer | None:
    """Begin a call or give its first answer, None while another process is making it.

    Raises: Conflict if the key came with another call.
    """
    begun = await queries.begin_call(
        call.database,
        **call.name,
        request_digest=call.digest,
        real_now=real_now,
        kept_since=real_now - KEPT,
        lease=LEASE,
    )
    if begun:
        return call
    first = record_if_any(_Begun, await queries.find_call(call.database, **call.name))
    if first is not None and first.request_digest != call.digest:
        raise Conflict("this Idempotency-Key came with another request before; use a new key for each new request")
    if first is None or first.status is None or first.answer is None:
        return None
    return KeptAnswer(first.status, first.answer)


async def forget_calls(database: Database, *, before: datetime) -> None:
    """Drop answers to calls that were made before a time,
    so many at once that it does not take long.
    """
    await queries.forget_calls(database, before=before, most=MOST_FORGOTTEN)
