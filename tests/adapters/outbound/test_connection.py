"""What counts as an answer, and which connections are used again,
against real sockets on the loopback.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import uvloop
from tests.adapters.outbound.receivers import (
    OK,
    Names,
    answering,
    client,
    receiving,
    response,
)
from tests.certificates import own_certificate

from paydesk.adapters.outbound.client import Answer


async def test_a_connection_is_used_again() -> None:
    async with receiving(answering(OK)) as receiver, client() as outbound:
        for _ in range(5):
            await outbound.post(f"http://127.0.0.1:{receiver.port}/", b"", {}, whose="shop")
    assert (receiver.connections, len(receiver.requests)) == (1, 5)


async def test_a_kept_connection_that_the_server_closed_is_replaced_at_once() -> None:
    async def once_each(request: bytes, writer: asyncio.StreamWriter) -> bool:
        if receiver.connections == 1 and len(receiver.requests) == 2:
            return False
        writer.write(OK)
        return True

    async with receiving(once_each) as receiver, client() as outbound:
        url = f"http://127.0.0.1:{receiver.port}/"
        first, second = [await outbound.post(url, each, {}, whose="shop") for each in (b"1", b"2")]
    assert (first.error, second.error, second.status) == (None, None, 200)
    assert receiver.connections == 2


async def test_a_kept_connection_that_breaks_within_an_answer_is_not_replaced() -> None:
    async def half(request: bytes, writer: asyncio.StreamWriter) -> bool:
        is_first = len(receiver.requests) == 1
        writer.write(OK if is_first else b"HTTP/1.1 100 Continue\r\n\r\n")
        return is_first

    async with receiving(half) as receiver, client() as outbound:
        url = f"http://127.0.0.1:{receiver.port}/"
        first, second = [await outbound.post(url, each, {}, whose="shop") for each in (b"1", b"2")]
    assert (first.error, second.error) == (None, "the server closed the connection without an answer")
    assert (receiver.connections, len(receiver.requests)) == (1, 2)


async def test_a_server_that_closes_each_connection_unanswered_is_asked_twice_at_most() -> None:
    async def once(request: bytes, writer: asyncio.StreamWriter) -> bool:
        is_first = len(receiver.requests) == 1
        writer.write(OK if is_first else b"")
        return is_first

    async with receiving(once) as receiver, client() as outbound:
        url = f"http://127.0.0.1:{receiver.port}/"
        first, second = [await outbound.post(url, each, {}, whose="shop") for each in (b"1", b"2")]
    assert (first.error, second.error) == (None, "the server closed the connection without an answer")
    assert (receiver.connections, len(receiver.requests)) == (2, 3)


async def test_a_connection_serves_one_merchant_and_mode_only() -> None:
    async with receiving(answering(OK)) as receiver, client() as outbound:
        for whose in ((1, True), (1, False), (2, True), None, (1, True), (1, False), (2, True), None):
            await outbound.post(f"http://127.0.0.1:{receiver.port}/", b"", {}, whose=whose)
    assert receiver.connections == 5


async def _greeted(port: int, tls: ssl.SSLContext) -> Answer:
    async with client(tls=tls, resolver=Names(["127.0.0.1"])) as outbound:
        return await outbound.post(f"https://shop.example:{port}/", b"1", {})


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
async def test_an_answer_that_comes_with_the_end_of_the_handshake_is_none(
    run: Callable[[Coroutine[Any, Any, Answer]], Answer], tmp_path: Path
) -> None:
    """Before TLS 1.3 the server has the last word of it. `paydesk serve` and `work` use uvloop."""
    tls = own_certificate(tmp_path, "shop.example")
    tls.maximum_version = ssl.TLSVersion.TLSv1_2

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came, goes = ssl.MemoryBIO(), ssl.MemoryBIO()
        side = tls.wrap_bio(came, goes, server_side=True)
        while True:
            try:
                side.do_handshake()
                break
            except ssl.SSLWantReadError:
                writer.write(goes.read())
                came.write(await reader.read(65536))
        side.write(OK)
        writer.write(goes.read())
        await reader.read()
        writer.close()

    trusting = ssl.create_default_context(cafile=str(tmp_path / "certificate.pem"))
    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        answer = await asyncio.to_thread(run, _greeted(port, trusting))
    assert (answer.status, answer.body_start) == (None, b"")
    assert answer.error == "the answer is not HTTP as it should be: it began before the request was sent"


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_an_answer_that_comes_before_the_request_is_none(scheme: str, tmp_path: Path) -> None:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(1)
        writer.write(OK)
        await writer.drain()

    tls = own_certificate(tmp_path, "shop.example") if scheme == "https" else None
    trusting = ssl.create_default_context(cafile=str(tmp_path / "certificate.pem")) if tls else None
    server = await asyncio.start_server(greet, "127.0.0.1", 0, limit=1024, ssl=tls)
    async with server, client(tls=trusting, resolver=Names(["127.0.0.1"])) as outbound:
        url = f"{scheme}://shop.example:{server.sockets[0].getsockname()[1]}/"
        # More than the sockets hold, and nobody reads it: it is never sent wholly.
        answer = await outbound.post(url, b"x" * 30_000_000, {})
    assert (answer.status, answer.body_start) == (None, b"")
    assert answer.error == "the answer is not HTTP as it should be: it began before the request was sent"


async def test_an_answer_that_nobody_asked_for_is_not_the_next_ones() -> None:
    async def doubled(request: bytes, writer: asyncio.StreamWriter) -> bool:
        writer.write(OK if len(receiver.requests) > 1 else OK + OK)
        return True

    async with receiving(doubled) as receiver, client() as outbound:
        url = f"http://127.0.0.1:{receiver.port}/"
        first, second = [await outbound.post(url, each, {}, whose="shop") for each in (b"1", b"2")]
    assert (first.status, first.complete) == (200, False)
    assert first.error == "the answer is not HTTP as it should be: more came than the answer"
    assert (second.error, second.body_start) == (None, b"ok")
    assert (receiver.connections, len(receiver.requests)) == (2, 2)


async def test_a_call_that_is_given_up_leaves_no_connection() -> None:
    asked, gone = asyncio.Event(), asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        asked.set()
        with suppress(ConnectionError):
            await reader.read()
        gone.set()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    async with server, client() as outbound:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        call = asyncio.ensure_future(outbound.post(url, b"", {}, whose="shop"))
        await asked.wait()
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await gone.wait()
    assert call.cancelled()


async def test_a_server_that_never_answers_is_asked_once() -> None:
    async def hang_up(request: bytes, writer: asyncio.StreamWriter) -> bool:
        return False

    async with receiving(hang_up) as receiver, client() as outbound:
        answer = await outbound.post(f"http://127.0.0.1:{receiver.port}/", b"", {})
    assert answer.error == "the server closed the connection without an answer"
    assert len(receiver.requests) == 1


async def test_a_connection_with_tls_is_used_again(tmp_path: Path) -> None:
    server = own_certificate(tmp_path, "shop.example")
    trusting = ssl.create_default_context(cafile=str(tmp_path / "certificate.pem"))
    async with (
        receiving(answering(OK), tls=server) as receiver,
        client(tls=trusting, resolver=Names(["127.0.0.1"])) as outbound,
    ):
        url = f"https://shop.example.:{receiver.port}/"
        answers = [await outbound.post(url, b"secret", {}, whose="shop") for _ in range(3)]
        unknown = await outbound.post(url.replace("shop", "other"), b"secret", {}, whose="shop")
    assert [(answer.error, answer.body_start) for answer in answers] == [(None, b"ok")] * 3
    assert (receiver.connections, len(receiver.requests)) == (1, 3)
    assert unknown.error is not None


async def test_an_answer_that_ends_early_is_an_error() -> None:
    short = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nok"
    async with receiving(answering(short, go_on=False)) as receiver, client() as outbound:
        answer = await outbound.post(f"http://127.0.0.1:{receiver.port}/", b"", {})
    assert (answer.status, answer.error) == (200, "the answer ended early")


async def test_an_answer_that_is_not_http_is_an_error() -> None:
    async with receiving(answering(b"SSH-2.0-OpenSSH\r\n\r\n", go_on=False)) as receiver, client() as outbound:
        answer = await outbound.post(f"http://127.0.0.1:{receiver.port}/", b"", {})
    assert answer.error is not None
    assert answer.error.startswith("the answer is not HTTP as it should be: ")


async def test_an_answer_with_endless_headers_is_an_error() -> None:
    async def pour(_request: bytes, writer: asyncio.StreamWriter) -> bool:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            writer.write(b"X-More: " + b"x" * 8000 + b"\r\n")
            await writer.drain()

    async with receiving(pour) as receiver, client() as outbound:
        answer = await outbound.post(f"http://127.0.0.1:{receiver.port}/", b"", {})
    assert answer.status is None
    assert answer.error is not None


async def test_an_endless_answer_ends_at_4_kib() -> None:
    async def pour(_request: bytes, writer: asyncio.StreamWriter) -> bool:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"400\r\n" + b"z" * 1024 + b"\r\n")
            await writer.drain()

    async with receiving(pour) as receiver, client() as outbound:
        answer = await outbound.post(f"http://127.0.0.1:{receiver.port}/", b"", {})
    assert (answer.status, len(answer.body_start), answer.complete) == (200, 4096, False)


async def test_no_more_than_4_kib_of_an_answer_are_read() -> None:
    async with receiving(answering(response(b"x" * 4097), response(b"y" * 4096))) as receiver, client() as outbound:
        url = f"http://127.0.0.1:{receiver.port}/"
        over, exact = await outbound.post(url, b"", {}), await outbound.post(url, b"", {})
    assert (over.body_start, over.complete, over.error) == (b"x" * 4096, False, None)
    assert (exact.body_start, exact.complete, exact.error) == (b"y" * 4096, True, None)
