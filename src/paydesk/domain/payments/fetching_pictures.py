"""Pictures of what is sold, fetched from where shops have them, made small and kept: customers'
browsers get them from us alone.

A picture that can't be had is never the reason why nothing is sold: the item is shown without it,
and the shop is told why.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from paydesk.adapters.outbound import OutboundClient
from paydesk.core.errors import Malformed, NotFound
from paydesk.core.shrinking import LARGEST, shrunk
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any, records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.merchants.hash_threads import Aside
from paydesk.domain.merchants.shop import Shop

queries = load_statements(__package__ or "", "fetching_pictures.sql")

LARGEST_ANSWER = LARGEST.content
"""Bytes that are read of what a server has."""

FRESH = timedelta(days=1)
"""So long a picture is not fetched again: its shop may have changed what is there."""

SIDE = 96
"""Pixels each way: shown at half of it, sharp on a phone too."""

TIMEOUT = 5.0
"""Seconds that a server may take: a shop's customer waits meanwhile."""

_AT_ONCE = 4
_FOUND = 200

_drawing = Aside("picture", threads=1, most=1_000)
"""One at a time: each is unpacked in memory."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """What came of a picture's address: by `name` it is stored, or else `problem` says why not."""

    name: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class StoredPicture:
    """A small picture, in the one format that we make."""

    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Known:
    url_digest: bytes
    digest: bytes


async def fetch_pictures(
    database: Database, outbound: OutboundClient, shop: Shop, urls: Collection[str], *, now: datetime
) -> Mapping[str, Fetched]:
    """Fetch and store the pictures at some addresses, each once; `now` is real time.
    Moves no money.

    Which addresses may be called at all is the outbound client's to say: never those of private
    networks.
    """
    digests = {url: hashlib.sha256(url.encode()).digest() for url in urls}
    side = {"merchant_id": shop.merchant_id, "live": shop.live}
    asked = list(digests.values())
    rows = queries.known_pictures(database, **side, url_digests=asked, since=now - FRESH)
    known = {one.url_digest: one.digest for one in await records_of(_Known, rows)}
    gate = asyncio.Semaphore(_AT_ONCE)

    async def fetch(url: str, digest: bytes) -> Fetched:
        if digest in known:
            return Fetched(known[digest].hex())
        async with gate:
            answer = await outbound.get(url)
        if answer.status != _FOUND or not answer.complete:
            return Fetched(problem=_problem(answer.status, answer.error))
        try:
            small = await _drawing.do(lambda: shrunk(answer.body_start, SIDE, "picture"))
        except Malformed as error:
            return Fetched(problem=str(error.message))
        name = hashlib.sha256(small).digest()
        await queries.store_picture(database, **side, digest=name, content=small, url_digest=digest, now=now)
        return Fetched(name.hex())

    found = await asyncio.gather(*(fetch(url, digest) for url, digest in digests.items()))
    return dict(zip(digests, found, strict=True))


def _problem(status: int | None, error: str | None) -> str:
    """Why what a server answered is no picture; redirects are not followed."""
    if error:
        return error
    if status == _FOUND:
        return f"the picture has more than {LARGEST_ANSWER // 1024} kB"
    return f"the server answered {status}, not {_FOUND}"


async def keep_picture(database: Database | Connection, shop: Shop, content: bytes, *, side: int, now: datetime) -> str:
    """Store a picture that somebody sent, made small; the name that it has from then on.

    Raises: Malformed, naming the field `picture`.
    """
    small = await _drawing.do(lambda: shrunk(content, side, "picture"))
    name = hashlib.sha256(small).digest()
    await queries.keep_picture(
        database, merchant_id=shop.merchant_id, live=shop.live, digest=name, content=small, now=now
    )
    return name.hex()


async def find_picture(database: Database, shop: Shop, name: str) -> StoredPicture:
    """A stored picture, by the name of its content. Raises: NotFound."""
    digest = bytes.fromhex(name)
    row = await queries.find_picture(database, merchant_id=shop.merchant_id, live=shop.live, digest=digest)
    found = record_if_any(StoredPicture, row)
    if found is None:
        raise NotFound("there is no such picture")
    return found
