"""Slow and huge requests over real sockets: each ends with words,
and everybody else is served meanwhile.
"""

from __future__ import annotations

import asyncio

import pytest
from tests.lengths import one_of
from tests.processes import eventually
from tests.web.connections.conftest import CHUNKED, GET, POST, Serve, connected, refused, said, status

from paydesk.web.connections import limits as sizes


@pytest.mark.parametrize(
    ("limit", "why", "begin", "more"),
    [
        ("head_seconds", "slow_head", b"GET / HTTP/1.1\r\nHost: a\r\n", b"X-Drip: a\r\n"),
        ("head_seconds", "slow_head", b"GET /aaaaaaaa", b"a"),
        ("head_seconds", "slow_head", b"\r\n", b"\r\n"),
        ("head_seconds", "slow_head", GET % b"first" + b"GET /s", b"s"),
        ("body_seconds", "slow_body", POST % 100_000, b"a"),
        ("body_seconds", "slow_body", CHUNKED, b"1\r\na\r\n"),
    ],
    ids=["headers", "address", "empty lines", "second request", "body", "chunks"],
)
async def test_what_drips_in_ends_in_time(serve: Serve, limit: str, why: str, begin: bytes, more: bytes) -> None:
    service = serve(**{limit: 0.3})
    before = refused(why)
    async with connected(service, begin) as (reader, writer):

        async def drip() -> None:
            while True:
                writer.write(more)
                await asyncio.sleep(0.02)

        dripping = asyncio.create_task(drip())
        answer = await said(reader)
        dripping.cancel()
    last = b"HTTP/1.1 " + answer.rpartition(b"HTTP/1.1 ")[2]
    assert (status(last), b"in time" in last, b"connection: close" in last) == (408, True, True)
    assert (b"/first" in answer) == (b"/first" in begin)
    assert refused(why) == before + 1
    assert await service.serves()


async def test_who_says_nothing_is_left_without_an_answer(serve: Serve) -> None:
    service = serve(head_seconds=0.2)
    assert await service.ask(b"") == b""
    assert await service.serves()


async def test_whoever_waits_for_a_body_hears_that_it_broke_off(serve: Serve) -> None:
    service = serve(body_seconds=0.2)
    assert status(await service.ask(POST % 5 + b"abc")) == 408
    await eventually(service.broke_off.is_set, "told")


async def test_an_answer_takes_as_long_as_it_does(serve: Serve) -> None:
    service = serve(head_seconds=0.1, body_seconds=0.1, unread_seconds=0.1, idle_seconds=0)
    async with connected(service, GET % b"hold") as (reader, _):
        for _ in range(3):
            assert status(await service.ask(b"GET /slow")) == 408
        service.let_go.set()
        assert b"/hold" in await said(reader)


@pytest.mark.parametrize(
    ("expected", "request_", "why"),
    one_of(
        3,
        [
            (414, b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n", "long_address"),
            (414, b"GET /" + b"a" * 2_000_000, "long_address"),
            (431, b"GET / HTTP/1.1\r\nHost: a\r\n" + b"".join(b"h%d: x\r\n" % n for n in range(200_000)), "large_head"),
            (431, b"GET / HTTP/1.1\r\nHost: a\r\nA: " + b"a" * 4_000_000, "large_head"),
            (431, b"GET / HTTP/1.1\r\nHost: a\r\nA: " + b"a" * 33_000 + b"\r\n\r\n", "large_head"),
            (431, b"\r\n" * 100_000, "large_head"),
            (413, POST % (sizes.LARGEST_BODY + 1), "large_body"),
            (413, POST % 10**18 + b"a" * 4_000_000, "large_body"),
            (
                413,
                CHUNKED + b"8000\r\n%b\r\n" % (b"a" * 0x8000) * 299,
                "large_body",
            ),
            (400, b"nonsense\r\n\r\n", "malformed"),
            (400, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "malformed"),
            (400, b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n", "malformed"),
            (400, b"POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", "malformed"),
        ],
    ),
)
async def test_what_is_too_large_is_refused_with_words(serve: Serve, expected: int, request_: bytes, why: str) -> None:
    service = serve()
    before = refused(why)
    answer = await service.ask(request_)
    assert (status(answer), b"connection: close" in answer) == (expected, True)
    assert len(answer.partition(b"\r\n\r\n")[2]) > 20
    assert refused(why) == before + 1
    assert await service.serves()


async def test_what_fits_is_served(serve: Serve) -> None:
    service = serve(head_seconds=30, body_seconds=30)
    headers = b"".join(b"h%d: %b\r\n" % (number, b"a" * 240) for number in range(98))
    path = b"a" * 8_000
    close = b"GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    body = b"b" * sizes.LARGEST_BODY
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:9], body[:60_000])) + b"0\r\n\r\n"
    chunked = CHUNKED + chunks
    answer = await service.ask(
        b"GET /%b HTTP/1.1\r\nHost: a\r\n%b\r\n" % (path[:7000], headers)
        + POST % len(body)
        + body
        + chunked
        + GET % path
        + close
    )
    assert answer.count(b"HTTP/1.1 200 OK") == 5
    assert b"%d bytes" % len(body) in answer
    assert b"60009 bytes" in answer
    assert answer.endswith(b"/last\r\n0\r\n\r\n")


@pytest.mark.parametrize(("marked", "expected"), [(True, 200), (False, 431)])
async def test_what_a_cell_has_taken_and_marked_fits(serve: Serve, marked: bool, expected: int) -> None:
    """Its client has sent as many fields as are taken, and as large ones."""
    service = serve()
    name = sizes.MARK if marked else b"x-other-header-field"
    many = b"".join(b"h%d: 1\r\n" % number for number in range(sizes.MOST_HEADERS))
    large = b"h: " + b"a" * (sizes.LARGEST_HEAD - 100) + b"\r\n"
    for fields in (many, large):
        head = b"GET / HTTP/1.1\r\nConnection: close\r\n" + name + b": " + b"m" * 500 + b"\r\n" + fields + b"\r\n"
        assert status(await service.ask(head)) == expected


async def test_a_mark_makes_room_for_its_own_request_alone(serve: Serve) -> None:
    service = serve()
    fields = b"".join(b"h%d: 1\r\n" % number for number in range(sizes.MOST_HEADERS))
    marked = b"GET / HTTP/1.1\r\nHost: a\r\n" + sizes.MARK + b": x\r\n%b\r\n"
    plain = b"GET / HTTP/1.1\r\nHost: a\r\n%b\r\n"
    answer = await service.ask(marked % fields + plain % fields)
    assert answer.count(b"200 OK") == 1, "the next one has no answer"
    assert status(await service.ask(plain % fields)) == 431
    many = fields + b"a: 1\r\nb: 1\r\nc: 1\r\n"
    assert status(await service.ask(marked % many)) == 431


async def test_the_next_request_is_no_part_of_a_body(serve: Serve) -> None:
    service = serve()
    body = b"b" * sizes.LARGEST_BODY
    async with connected(service, POST % len(body)) as (reader, writer):
        await eventually(lambda: len(service.seen) == 1, "the head is there")
        last = b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\nConnection: close\r\n\r\n"
        writer.write(body + last + b"c" * 60_000)
        answer = await said(reader)
    assert b"%d bytes" % len(body) in answer
    assert b"60000 bytes" in answer


async def test_a_body_is_too_large_by_its_last_byte(serve: Serve) -> None:
    service = serve()
    chunk = b"%x\r\n%b\r\n" % (0x10000, b"a" * 0x10000)
    fits = chunk * (sizes.LARGEST_BODY // 0x10000)
    answer = await service.ask(CHUNKED + fits + b"1\r\na\r\n0\r\n\r\n")
    assert (status(answer), b"connection: close" in answer) == (413, True)


async def test_fields_behind_a_body_are_no_header_fields(serve: Serve) -> None:
    service = serve()
    chunked = b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    assert b"3 bytes" in await service.ask(chunked + b"3\r\nabc\r\n0\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n")
    assert b"x-forwarded-for" not in dict(service.seen[0]["headers"])


async def test_a_hundred_requests_at_once_are_answered_as_far_as_they_may_wait(serve: Serve) -> None:
    service = serve()
    before = refused("pipelined")
    answer = await service.ask(GET % b"one" * 5_000)
    assert answer.count(b"HTTP/1.1 200 OK") == sizes.MOST_PIPELINED + 1
    assert (len(service.seen), refused("pipelined")) == (sizes.MOST_PIPELINED + 1, before + 1)
    assert await service.serves()


@pytest.mark.parametrize("bad", [b"nonsense\r\n\r\n", POST % 10**18, b"GET /" + b"a" * 9000])
async def test_what_was_asked_before_is_answered_first(serve: Serve, bad: bytes) -> None:
    service = serve()
    async with connected(service, GET % b"hold" + bad) as (reader, _):
        await eventually(lambda: len(service.seen) == 1, "asked")
        assert await service.serves()
        service.let_go.set()
        answer = await said(reader)
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"/hold" in answer


async def test_whoever_never_reads_its_answer_is_left(serve: Serve) -> None:
    service = serve(unread_seconds=0.3)
    before = refused("slow_reader")
    async with connected(service, GET % b"large") as (reader, _):
        reader._transport.pause_reading()
        assert await service.serves()
        await eventually(service.broke_off.is_set, "told")
    assert refused("slow_reader") == before + 1


async def test_an_upgrade_is_answered_as_if_nobody_had_asked(serve: Serve) -> None:
    service = serve()
    wish = b"GET /up HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n"
    answer = await service.ask(wish + b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    assert (status(answer), b"connection: close" in answer, len(service.seen)) == (200, True, 1)
    assert status(await service.ask(b"CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n")) == 400


async def test_a_body_is_asked_for_when_it_is_wanted(serve: Serve) -> None:
    service = serve()
    expecting = b"POST /%s HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n"
    async with connected(service, expecting % (b"echo", 3)) as (reader, writer):
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(b"abc" + GET.replace(b"Host", b"Connection: close\r\nHost") % b"next")
        answer = await said(reader)
        assert b"3 bytes" in answer
        assert b"/next" in answer
    assert status(await service.ask(expecting % (b"echo", 10**9))) == 413
    # Nobody wanted it: what comes next can't be told from it, so nothing does.
    answer = await service.ask(expecting % (b"deaf", 3) + GET % b"next")
    assert (status(answer), b"/next" in answer) == (200, False)
