"""No shop's odd answers acknowledge a pingback that they do not answer,
nor use up its attempts.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from tests.domain.pingbacks.test_sending import attempts_of, row_of

from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.pingbacks.sending import PingbackSender


async def test_what_is_left_of_one_answer_acknowledges_no_other_pingback(
    database: Database, shop: Shop, sender: PingbackSender, queue: Any
) -> None:
    ok, nok = (f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode() for body in ("ok", "NOK"))

    async def twice_then_no(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests = 0
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                await reader.readexactly(int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]))
                writer.write(nok if b"/second" in head else ok + ok if requests else ok)
                requests += 1
        writer.close()

    server = await asyncio.start_server(twice_then_no, "127.0.0.1", 0)
    async with server:
        base = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        ids = []
        for path in ("first", "first", "second"):
            ids.append(await queue(shop, f"{base}/{path}"))
            await sender.send_due_once(utc_now())
    states = [(await row_of(database, each))["state"] for each in ids]
    assert states == ["acknowledged", "due", "due"]
    [doubled], [second] = [await attempts_of(database, each) for each in ids[1:]]
    assert (doubled["status"], doubled["response_body"]) == (200, "ok")
    assert doubled["error"] == "the answer is not HTTP as it should be: more came than the answer"
    assert (second["response_body"], second["error"]) == ("NOK", "")


async def test_a_kept_connection_that_dies_costs_no_attempt(
    database: Database, shop: Shop, sender: PingbackSender, queue: Any
) -> None:
    heads: list[bytes] = []

    async def one_answer_each(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", b""):
            with suppress(asyncio.IncompleteReadError, ConnectionError):
                heads.append(await reader.readuntil(b"\r\n\r\n"))
                writer.write(answer)
        writer.close()

    server = await asyncio.start_server(one_answer_each, "127.0.0.1", 0)
    async with server:
        for _ in range(2):
            pingback = await queue(shop, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
            await sender.send_due_once(utc_now())
    row = await row_of(database, pingback)
    assert (row["state"], row["attempts"], len(heads)) == ("acknowledged", 1, 3)
