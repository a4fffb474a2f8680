"""Whatever another cell answers, or does not, no log line has what came with a request to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import ConnectionTimeoutError
from structlog.testing import capture_logs
from tests import breaking
from tests.shopfront import open_page
from tests.web.cells.two_cells import HOME, SECOND, Cells, form_of

from paydesk.web.cells import calling
from paydesk.web.cells.calling import CellAway, why_away

Serves = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(serve: Serves) -> AsyncIterator[str]:
    """Something that takes connections; where."""
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


def says(answer: bytes) -> Serves:
    """What answers so to whatever it is sent."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    return serve


async def names_nobody(cells: Cells, inside: str, path: str, why: str) -> None:
    """The log of a call and of a visit, both passed on in vain, says why and not whose they are."""
    await breaking.say(cells.databases[HOME], "cell", {"number": SECOND}, inside=inside)
    key = cells.merchants[SECOND].private_key
    with capture_logs() as logs:
        call = await cells.web[HOME].get("/api/v1/payments", headers={"X-ApiKey": key, "Cookie": "theirs=secret"})
        page = await cells.web[HOME].get(path, headers={"Cookie": "theirs=secret"})
    assert [call.status_code, page.status_code] == [503, 503]
    said = [str(one) for one in logs if one["event"] == "another cell does not answer"]
    assert len(said) == 2
    assert all(why in one for one in said)
    for secret in (key, path.rpartition("/")[2], "theirs=secret"):
        assert not any(secret in str(one) for one in logs)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"\x15\x03\x01\x00\x02\x02\x16", "ClientResponseError"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: -2\r\n\r\n", "ClientResponseError"),
        (b"", "ServerDisconnectedError"),
    ],
    ids=["TLS", "nonsense", "nothing"],
)
async def test_what_answers_nonsense(cells: Cells, answer: bytes, why: str) -> None:
    """As a web server that speaks TLS, where the address says `http`."""
    await cells.know(HOME, SECOND)
    path = await open_page(cells.web[SECOND], form_of(cells.merchants[SECOND]))
    async with serving(says(answer)) as inside:
        await names_nobody(cells, inside, path, why)


def test_what_takes_its_time_to_take_a_connection() -> None:
    """aiohttp names the whole address then."""
    lost = CellAway()
    lost.__cause__ = ConnectionTimeoutError("Connection timeout to host http://10.0.0.2:8000/checkout/l1ff0-secret")
    assert why_away(lost) == "ConnectionTimeoutError"
    assert why_away(TimeoutError("it is silent")) == "TimeoutError: it is silent"


async def test_what_takes_no_connection(cells: Cells, monkeypatch: pytest.MonkeyPatch) -> None:
    await cells.know(HOME, SECOND)
    path = await open_page(cells.web[SECOND], form_of(cells.merchants[SECOND]))
    monkeypatch.setattr(calling, "CONNECT", 0.0)
    await names_nobody(cells, "http://127.0.0.1:1", path, "ClientConnectorError: Cannot connect to host 127.0.0.1:1")
