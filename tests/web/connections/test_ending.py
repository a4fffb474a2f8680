"""A service that ends takes nothing new, and answers what was sent onto idle connections before
whoever sent it could see the end.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from tests.processes import PATIENCE
from tests.web.connections.conftest import GET, POST, Serve, Service, said

from paydesk.web.connections import limits


async def answered(reader: asyncio.StreamReader, path: bytes) -> bytes:
    """The answer to a request, whose body is known by its path."""
    async with asyncio.timeout(PATIENCE):
        return await reader.readuntil(b"at /" + path + b"\r\n0\r\n\r\n")


async def takes_nothing_new(service: Service) -> None:
    """Wait until no connection is accepted any more."""
    async with asyncio.timeout(PATIENCE):
        with suppress(ConnectionRefusedError):
            while True:
                _, writer = await asyncio.open_connection("127.0.0.1", service.port)
                writer.close()
                await asyncio.sleep(0.01)


async def said_by_one_that_ends(service: Service, reader: asyncio.StreamReader) -> bytes:
    """What a service says to who asks for `/hold`, and is answered once it takes nothing new."""
    async with asyncio.timeout(PATIENCE):
        while not service.seen:  # noqa: ASYNC110 -- the service is in another thread
            await asyncio.sleep(0.01)
    service.end()
    await takes_nothing_new(service)
    service.let_go.set()
    return await said(reader)


async def test_what_comes_on_an_idle_connection_in_the_moment_of_the_end_is_answered_and_then_it_closes(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "ENDING_SECONDS", PATIENCE)
    service = serve(grace=2 * PATIENCE)
    used, fresh = [await asyncio.open_connection("127.0.0.1", service.port) for _ in range(2)]
    used[1].write(GET % b"first")
    assert b"connection: close" not in (await answered(used[0], b"first")).lower()
    service.end()
    await takes_nothing_new(service)
    asked = ((b"second", used), (b"third", fresh))
    for path, (_, writer) in asked:
        writer.write(GET % path)
    for path, (reader, writer) in asked:
        answer = await said(reader)
        assert answer.startswith(b"HTTP/1.1 200")
        assert b"connection: close" in answer.lower()
        assert b"at /" + path in answer, "and then the connection ends"
        writer.close()


async def test_of_two_that_come_together_in_that_moment_the_first_is_answered_and_nothing_done_for_the_other(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever sent both reads that the connection ends with that answer, and may send the other one
    elsewhere.
    """
    monkeypatch.setattr(limits, "ENDING_SECONDS", PATIENCE)
    service = serve(grace=2 * PATIENCE)
    reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
    writer.write(GET % b"first")
    await answered(reader, b"first")
    service.end()
    await takes_nothing_new(service)
    writer.write(GET % b"second" + POST % 3 + b"abc")
    answer = await said(reader)
    assert (answer.count(b"HTTP/1.1 200"), b"at /second" in answer) == (1, True)
    assert b"connection: close" in answer.lower()
    assert [one["path"] for one in service.seen] == ["/first", "/second"]
    writer.close()


async def test_of_two_on_their_way_as_it_ends_both_are_answered(serve: Serve) -> None:
    service = serve(grace=30)
    reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
    writer.write(GET % b"hold" + POST % 3 + b"abc")
    answer = await said_by_one_that_ends(service, reader)
    assert (b"at /hold" in answer, b"3 bytes at /echo" in answer) == (True, True)
    assert answer.lower().count(b"connection: close") == 1, "in the last one"
    writer.close()


async def test_an_idle_connection_on_which_nothing_comes_in_that_moment_ends(serve: Serve) -> None:
    service = serve(grace=30)
    reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
    writer.write(GET % b"first")
    await answered(reader, b"first")
    service.end()
    assert await said(reader) == b""
    writer.close()


async def test_what_is_being_answered_as_it_ends_is_answered(serve: Serve) -> None:
    service = serve(grace=30)
    reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
    writer.write(GET % b"hold")
    answer = await said_by_one_that_ends(service, reader)
    assert (b"at /hold" in answer, b"connection: close" in answer.lower()) == (True, True)
    writer.close()
