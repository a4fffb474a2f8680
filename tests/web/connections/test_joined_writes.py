"""What is written in one turn of the event loop is one write of the socket's, in its order."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from paydesk.web.connections.joined_writes import LARGEST, JoinedWrites


class Wire:
    """A transport that keeps what was done to it."""

    def __init__(self) -> None:
        self.done: list[Any] = []
        self.closing = False

    def write(self, data: bytes) -> None:
        self.done.append(data)

    def write_eof(self) -> None:
        self.done.append("eof")

    def close(self) -> None:
        self.closing = True
        self.done.append("close")

    def is_closing(self) -> bool:
        return self.closing

    def get_extra_info(self, name: str) -> str:
        return f"the {name}"


@pytest.fixture
def wire() -> Wire:
    return Wire()


def joined(wire: Wire) -> JoinedWrites:
    return JoinedWrites(wire, asyncio.get_running_loop())  # type: ignore[arg-type]


async def test_head_and_body_are_one_write_and_the_next_turn_is_another(wire: Wire) -> None:
    transport = joined(wire)
    for part in (b"head", b"", b"body"):
        transport.write(part)
    assert wire.done == []
    await asyncio.sleep(0)
    transport.write(b"next")
    await asyncio.sleep(0)
    assert wire.done == [b"headbody", b"next"]


@pytest.mark.parametrize("end", ["write_eof", "close"])
async def test_the_end_comes_after_what_was_written(wire: Wire, end: str) -> None:
    transport = joined(wire)
    transport.write(b"answer")
    getattr(transport, end)()
    await asyncio.sleep(0)
    assert wire.done == [b"answer", {"write_eof": "eof", "close": "close"}[end]]


async def test_much_is_not_kept(wire: Wire) -> None:
    transport = joined(wire)
    transport.write(b"head")
    transport.write(b"x" * LARGEST)
    assert [len(data) for data in wire.done] == [4 + LARGEST]
    await asyncio.sleep(0)
    assert len(wire.done) == 1


async def test_nothing_is_written_to_what_was_aborted_meanwhile(wire: Wire) -> None:
    transport = joined(wire)
    transport.write(b"answer")
    wire.closing = True
    await asyncio.sleep(0)
    assert wire.done == []


async def test_all_else_is_the_transports_own(wire: Wire) -> None:
    assert joined(wire).get_extra_info("socket") == "the socket"
