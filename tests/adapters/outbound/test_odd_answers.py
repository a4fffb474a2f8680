"""What servers answer is read as a client reads it that is known to be good,
and where it is not there is a reason; however it is cut, and whatever came before.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import struct
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from ipaddress import ip_network
from itertools import pairwise
from typing import Any

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.adapters.outbound.odd_answers import CHUNKED, DIFFERENT, EVERY, PLAIN

from paydesk.adapters.outbound import OutboundClient
from paydesk.adapters.outbound.connection import Connection, Heard
from paydesk.adapters.outbound.problems import CallFailed

MOST = 4096
Read = tuple[int | None, bytes, bool] | None
"""Status, body and whether it is whole; None for no answer."""


class Said:
    """A server that answers each request with `answer`, and then closes or resets."""

    def __init__(self) -> None:
        self.answer = b""
        self.resets = False
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(self.answer)
            await writer.drain()
            if self.resets:
                await reader.read(1)
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            else:
                writer.write_eof()
                await reader.read()
        writer.transport.abort()


@asynccontextmanager
async def saying() -> AsyncIterator[Said]:
    said = Said()
    server = await asyncio.start_server(said.serve, "127.0.0.1", 0)
    said.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    async with server:
        yield said


async def as_we_read(outbound: OutboundClient, url: str) -> Read:
    answer = await outbound.post(url, b"", {})
    return None if answer.error else (answer.status, answer.body_start, answer.complete)


async def as_aiohttp_reads(session: aiohttp.ClientSession, url: str) -> Read:
    body = bytearray()
    try:
        async with session.post(url, allow_redirects=False) as response:
            while len(body) <= MOST and not response.content.at_eof():
                body += await response.content.read(MOST + 1 - len(body))
            return response.status, bytes(body[:MOST]), len(body) <= MOST
    except (aiohttp.ClientError, OSError, ValueError):
        return None


async def test_answers_are_read_as_aiohttp_reads_them_but_where_there_is_a_reason() -> None:
    read: dict[str, tuple[Read, Read]] = {}
    connector = aiohttp.TCPConnector(force_close=True)
    outbound = OutboundClient([ip_network("127.0.0.0/8")])
    async with (
        saying() as said,
        aiohttp.ClientSession(
            connector=connector, auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar(), read_bufsize=2 * MOST
        ) as session,
    ):
        for name, said.answer in EVERY.items():
            read[name] = (await as_we_read(outbound, said.url), await as_aiohttp_reads(session, said.url))
        await outbound.close()
    assert {name for name, (ours, theirs) in read.items() if ours != theirs} == set(DIFFERENT)
    more_ok = {name for name, (ours, theirs) in read.items() if is_ok(ours) and not is_ok(theirs)}
    assert {DIFFERENT[name] for name in more_ok} == {
        "a byte that is forbidden, but misplaces no end",
        "all heads together are bounded, not each line",
    }


def is_ok(read: Read) -> bool:
    return read is not None and read[0] == 200 and read[2] and read[1].strip().lower() == b"ok"


@pytest.mark.parametrize("name", ["no length", "HTTP/1.0 without a length", "Connection 'close' without a length"])
async def test_an_answer_whose_end_is_a_reset_is_none(name: str) -> None:
    outbound = OutboundClient([ip_network("127.0.0.0/8")])
    async with saying() as said:
        said.answer = EVERY[name]
        assert (await outbound.post(said.url, b"", {})).complete
        said.resets = True
        # The server resets when it reads on.
        answer = await outbound.post(said.url, b"x", {})
    await outbound.close()
    assert (answer.status, answer.complete) == (200, False)
    assert answer.error == "the connection broke before the answer was complete"


class Wire(asyncio.Transport):
    """A transport that keeps what is written and does nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.is_over = False

    def write(self, data: Any) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self.is_over

    def close(self) -> None:
        self.is_over = True

    def abort(self) -> None:
        self.is_over = True


async def heard_over(connection: Connection, parts: Sequence[bytes]) -> tuple[Heard, str]:
    """What one exchange hears, and what is wrong with it; the server closes if it isn't done."""
    heard = Heard()
    exchange = asyncio.ensure_future(connection.exchange(b"POST", heard, time.monotonic() + 3600.0))
    await asyncio.sleep(0)
    for part in parts:
        connection.data_received(part)
    if not (heard.complete or connection._done is None or connection._done.done()):
        connection.connection_lost(None)
    try:
        await exchange
    except CallFailed as problem:
        return heard, f"{type(problem).__name__}: {problem}"
    return heard, ""


@asynccontextmanager
async def opened() -> AsyncIterator[Connection]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs:
        connection = Connection(ours, MOST, is_tls=False)
        connection.connection_made(Wire())
        yield connection


def cut(answer: bytes, places: Sequence[int]) -> list[bytes]:
    ends = [0, *sorted({place % (len(answer) + 1) for place in places} - {0, len(answer)}), len(answer)]
    return [answer[start:end] for start, end in pairwise(ends) if end > start]


def outcome(heard: Heard, problem: str) -> tuple[Any, ...]:
    return heard.status, bytes(heard.body), heard.complete, problem


answers = st.sampled_from(sorted(EVERY.values()))
mutated = st.builds(
    lambda answer, place, gone, new: answer[: place % len(answer)] + new + answer[place % len(answer) + gone :],
    answers.filter(lambda answer: 0 < len(answer) < 6000),
    st.integers(0, 6000),
    st.integers(0, 4),
    st.sampled_from(
        [b"", b"\r", b"\n", b"\r\n", b"\0", b" ", b":", b"0", b"2", b"\xff", b"ok", b"HTTP/1.1 200 OK\r\n"]
    ),
)
cuts = st.lists(st.integers(0, 6000), max_size=5)


@given(answer=answers | mutated, places=cuts)
def test_how_an_answer_is_cut_changes_nothing(answer: bytes, places: list[int]) -> None:
    async def play() -> None:
        async with opened() as connection:
            whole = outcome(*await heard_over(connection, [answer] if answer else []))
        async with opened() as connection:
            parts = outcome(*await heard_over(connection, cut(answer, places)))
        if whole[3].startswith("NotHttp") or parts[3].startswith("NotHttp"):
            assert [whole[3][:7], parts[3][:7]] == ["NotHttp", "NotHttp"]
        elif len(whole[1]) < MOST:
            assert parts == whole

    asyncio.run(play())


@given(first=answers | mutated, second=answers | mutated, places=cuts)
def test_a_connection_that_is_used_again_hears_as_a_new_one(first: bytes, second: bytes, places: list[int]) -> None:
    async def play() -> None:
        async with opened() as connection:
            await heard_over(connection, cut(first, places))
            if not connection.is_reusable:
                return
            again = outcome(*await heard_over(connection, cut(second, places)))
        async with opened() as connection:
            assert again == outcome(*await heard_over(connection, cut(second, places)))

    asyncio.run(play())


@pytest.mark.parametrize("trailer", [b"Transfer-Encoding: x", b"Connection: close", b"Content-Length: 2"])
async def test_after_a_trailer_that_ends_the_connection_nothing_else_is_asked_on_it(trailer: bytes) -> None:
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n" + trailer + b"\r\n\r\n"
    async with opened() as connection:
        status, body, _, _ = outcome(*await heard_over(connection, [chunked]))
        assert (status, body) == (200, b"ok")
        if connection.is_reusable:
            assert outcome(*await heard_over(connection, [PLAIN])) == (200, b"ok", True, "")


@given(unasked=st.binary(min_size=1, max_size=300) | answers.filter(bool))
def test_what_comes_between_two_requests_ends_the_connection(unasked: bytes) -> None:
    async def play() -> None:
        async with opened() as connection:
            assert outcome(*await heard_over(connection, [PLAIN])) == (200, b"ok", True, "")
            assert connection.is_reusable
            connection.data_received(unasked)
            assert not connection.is_reusable
            assert not connection.is_quiet
            heard, problem = await heard_over(connection, [])
            assert (heard.status, problem) == (None, "NotHttp: it began before the request was sent")

    asyncio.run(play())


async def test_each_exchange_on_a_connection_has_its_own_time() -> None:
    async def asked(connection: Connection, seconds: float) -> Heard:
        heard = Heard()
        await connection.exchange(b"POST", heard, time.monotonic() + seconds)
        return heard

    async with opened() as connection, asyncio.timeout(60):
        first = asyncio.ensure_future(asked(connection, 0.02))
        await asyncio.sleep(0)
        connection.data_received(PLAIN)
        assert (await first).complete
        second = asyncio.ensure_future(asked(connection, 60))
        await asyncio.wait([second], timeout=0.05)
        connection.data_received(PLAIN)
        assert (await second).complete, "it was cut off by the end of the first one's time"
        with pytest.raises(TimeoutError) as late:
            await asked(connection, 0.02)
        assert not late.value.args
        assert connection._transport is not None
        assert connection._transport.is_closing()


@given(after=st.binary(min_size=1, max_size=300), chunked=st.booleans())
def test_what_comes_with_the_end_of_an_answer_spoils_it(after: bytes, chunked: bool) -> None:
    async def play() -> None:
        for parts in ([PLAIN + after], [PLAIN, after], [CHUNKED + after], [CHUNKED, after]):
            async with opened() as connection:
                _, problem = await heard_over(connection, parts)
                assert problem == "NotHttp: more came than the answer"
                assert not connection.is_reusable

    asyncio.run(play())


async def test_no_answer_of_a_hostile_server_is_heard_by_another_request_than_its_own() -> None:
    chance = random.Random(20261123)
    truly: dict[int, bool] = {}
    sent = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                number = int(head.split(b"X-Number: ")[1].split(b"\r\n")[0])
                truly[number] = chance.random() < 0.5
                own = PLAIN if truly[number] else PLAIN.replace(b"ok", b"no")
                more = chance.choice([b"", b"", PLAIN, CHUNKED, PLAIN[:20], b"\r\n", b"ok"])
                if chance.random() < 0.5:
                    writer.write(own + more)
                    await writer.drain()
                else:
                    writer.write(own)
                    await writer.drain()
                    writer.write(more)
                    await writer.drain()
                sent.set()
                if chance.random() < 0.2:
                    return writer.close()

    outbound = OutboundClient([ip_network("127.0.0.0/8")])
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        for number in range(400):
            sent.clear()
            answer = await outbound.post(url, b"", {"X-Number": str(number)}, whose="shop")
            await sent.wait()
            heard_ok = answer.error is None and answer.body_start == b"ok"
            assert truly[number] or not heard_ok, f"request {number} heard an answer that is not its own"
        await outbound.close()
    assert set(truly.values()) == {True, False}
