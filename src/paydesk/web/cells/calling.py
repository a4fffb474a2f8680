"""Asks another cell's web server in a client's stead, and gives its answer back as it comes.

A cell that is dead or slow takes nobody else with it: few requests at once wait for one cell
(`places.py`), each for a limited time, and none for one that took no connection a moment ago, or
takes them and is silent (`pulses.py`). A request is sent once: a connection is used for one alone,
so that none ends just as another request is written to it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

import aiohttp
from yarl import URL

from paydesk.core.errors import IN_A_MOMENT, PaydeskError, Unavailable, Unsure
from paydesk.domain.cells.directory import Cell
from paydesk.web.cells.places import Asker, Places
from paydesk.web.cells.pulses import Pulse

CONNECT: Final = 2.0
"""Seconds that another cell gets to take a connection, and is left alone if it took none."""

ANSWER: Final = 60.0
"""Seconds until its whole answer is there; a proxy in front gives up then, too."""

HEALTH: Final = 2.0
"""Seconds that another cell gets for its health page, in which it looks nothing up."""

_READS: Final = ("GET", "HEAD")
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

    retry_after = IN_A_MOMENT

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


def why_away(error: BaseException) -> str:
    """What kept another cell from answering, for a log, in which no secret stands: aiohttp's errors
    name the address that was asked, as a customer's link, and its headers, as a private key.
    """
    while isinstance(error, PaydeskError) and error.__cause__ is not None:
        error = error.__cause__
    name, words = type(error).__name__, str(error)
    tells = isinstance(error, aiohttp.ClientOSError) or not isinstance(error, aiohttp.ClientError | ValueError)
    return f"{name}: {words}" if words and tells else name


@dataclass(frozen=True, slots=True)
class Answer:
    """What another cell answers: its `head` is there, and its body comes."""

    head: aiohttp.ClientResponse
    _pulse: Pulse
    _reads: bool

    async def parts(self) -> AsyncIterator[bytes]:
        """The body as it comes, waited for as the head was: not of a cell that is silent by now.

        Raises: TimeoutError, ClientError, OSError.
        """
        content = self.head.content
        # What has come a while ago is no sign of life now.
        while part := content.read_nowait() or await self._waited_for(content.readany()):
            yield part

    async def _waited_for(self, coming: Coroutine[None, None, bytes]) -> bytes:
        return await self._pulse.answered(asyncio.ensure_future(coming), reads=self._reads)


class OtherCells:
    """The other cells' web servers, as one process asks them."""

    def __init__(self, session: aiohttp.ClientSession, clock: Callable[[], float] = time.monotonic) -> None:
        self._session = session
        self._clock = clock
        self._places = Places()
        self._away_until: dict[int, float] = {}
        self._pulses: dict[tuple[int, str], Pulse] = {}

    @asynccontextmanager
    async def asked(
        self, cell: Cell, method: str, target: str, headers: Iterable[tuple[str, str]], body: bytes, *, asker: Asker
    ) -> AsyncIterator[Answer]:
        """The answer of another cell, whose head is there; `asker` is whose request it is.

        Raises: CellAway if it got nothing; NoPlace if it was not asked; AnswerLost if what may have
            written anything has no answer.
        """
        pulse, reads = self._pulse_of(cell), method in _READS
        if self._clock() < self._away_until.get(cell.number, 0):
            raise CellAway
        if await pulse.stays_silent():
            raise CellAway
        with self._places.taken(cell.number, asker):
            asking = self._session.request(
                method,
                _inside(cell, target),
                headers=list(headers),
                data=body or None,
                allow_redirects=False,
            )
            try:
                response = await pulse.answered(asyncio.ensure_future(asking), reads=reads)
            except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
                self._away_until[cell.number] = self._clock() + CONNECT
                raise CellAway from error
            except (aiohttp.ClientError, OSError) as error:
                raise (CellAway if reads else AnswerLost) from error
            async with response:
                yield Answer(response, pulse, reads)

    async def end(self) -> None:
        """Leave off asking."""
        for pulse in self._pulses.values():
            await pulse.end()

    def _pulse_of(self, cell: Cell) -> Pulse:
        """The cell's pulse where it is reached now."""
        where = cell.number, cell.inside
        if where not in self._pulses:
            self._pulses[where] = Pulse(cell.number, partial(self._see_health, cell), self._clock)
        return self._pulses[where]

    async def _see_health(self, cell: Cell) -> None:
        limit = aiohttp.ClientTimeout(total=HEALTH)
        async with self._session.get(_inside(cell, "/healthz"), timeout=limit, allow_redirects=False):
            pass


def _inside(cell: Cell, target: str) -> URL:
    return URL(cell.inside.rstrip("/") + target, encoded=True)


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
        others = OtherCells(session)
        try:
            yield others
        finally:
            await others.end()
