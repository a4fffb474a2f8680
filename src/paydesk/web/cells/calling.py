"""Asks another cell's web server in a client's stead, and gives its answer back as it comes.

A cell that is dead or slow takes nobody else with it: few requests at once wait for one cell
(`places.py`), each for a limited time, and none for one that took no connection a moment ago. A
request is sent once: a connection is used for one alone, so that none ends just as another request
is written to it.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Final

import aiohttp
from yarl import URL

from paydesk.core.errors import Unavailable, Unsure
from paydesk.domain.cells.directory import Cell
from paydesk.web.cells.places import Asker, Places

CONNECT: Final = 2.0
"""Seconds that another cell gets to take a connection, and is left alone if it took none."""

ANSWER: Final = 60.0
"""Seconds until its whole answer is there; a proxy in front gives up then, too."""

_LARGEST_LINE: Final = 32 * 1024
_OWN: Final = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
"""Headers that the client would add by itself."""

OF_ONE_HOP: Final = frozenset(
    (
        *(b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection"),
        *(b"te", b"trailer", b"transfer-encoding", b"upgrade"),
    )
)
"""Header fields that are about a connection, not about the request (RFC 9110, 7.6.1)."""


class CellAway(Unavailable):
    """Another cell could not be asked; nothing was done."""

    retry_after = 3

    def __init__(self) -> None:
        super().__init__(
            "the part of this service that does this can't be reached just now; nothing was done, try again"
        )


class AnswerLost(Unsure):
    """Another cell was asked, and its answer is lost."""

    def __init__(self) -> None:
        super().__init__(
            "the part of this service that does this did not answer, and it is not known whether this was done: send "
            "it again with the same Idempotency-Key, which does nothing twice, or look how it stands before you send "
            "it again without one"
        )


class OtherCells:
    """The other cells' web servers, as one process asks them."""

    def __init__(self, session: aiohttp.ClientSession, clock: Callable[[], float] = time.monotonic) -> None:
        self._session = session
        self._clock = clock
        self._places = Places()
        self._away_until: dict[int, float] = {}

    @asynccontextmanager
    async def asked(
        self, cell: Cell, method: str, target: str, headers: Iterable[tuple[str, str]], body: bytes, *, asker: Asker
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """The answer of another cell, whose head is there; `asker` is whose request it is.

        Raises: CellAway if it got nothing; NoPlace if it was not asked; AnswerLost if what may have
            written anything has no answer.
        """
        if self._clock() < self._away_until.get(cell.number, 0):
            raise CellAway
        with self._places.taken(cell.number, asker):
            try:
                response = await self._session.request(
                    method,
                    URL(cell.inside.rstrip("/") + target, encoded=True),
                    headers=list(headers),
                    data=body or None,
                    allow_redirects=False,
                )
            except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
                self._away_until[cell.number] = self._clock() + CONNECT
                raise CellAway from error
            except (aiohttp.ClientError, OSError) as error:
                raise (CellAway if method in ("GET", "HEAD") else AnswerLost) from error
            async with response:
                yield response


@asynccontextmanager
async def other_cells() -> AsyncIterator[OtherCells]:
    """Ways to other cells for the length of a block; nothing is opened before the first request."""
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, force_close=True),
        timeout=aiohttp.ClientTimeout(total=ANSWER, connect=CONNECT),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        skip_auto_headers=_OWN,
        trust_env=False,
        max_line_size=_LARGEST_LINE,
        max_field_size=_LARGEST_LINE,
    ) as session:
        yield OtherCells(session)
