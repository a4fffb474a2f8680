from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence

import pytest

from paydesk.adapters.outbound import name_lookups
from paydesk.adapters.outbound.name_lookups import KnownNames


class Slow:
    """Answers when it is let."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []
        self.may = asyncio.Event()
        self.fails = False

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        self.asked.append((host, port))
        await self.may.wait()
        if self.fails:
            raise socket.gaierror(socket.EAI_AGAIN, "later")
        return [f"192.0.2.{len(self.asked)}"]

    async def close(self) -> None:
        pass


async def test_who_asks_the_same_together_asks_once_and_one_who_gives_up_takes_nobody_along() -> None:
    slow = Slow()
    names = KnownNames(slow)
    impatient, *others = (asyncio.ensure_future(names.resolve("shop.example", 443)) for _ in range(3))
    await asyncio.sleep(0)
    impatient.cancel()
    slow.may.set()
    assert await asyncio.gather(*others) == [["192.0.2.1"]] * 2
    assert await names.resolve("shop.example", 443) == ["192.0.2.1"]
    assert slow.asked == [("shop.example", 443)]


async def test_a_name_is_asked_for_again_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow()
    slow.may.set()
    names = KnownNames(slow)
    monkeypatch.setattr(name_lookups, "_KNOWN_SECONDS", 0.0)
    assert await names.resolve("shop.example", 443) == ["192.0.2.1"]
    assert await names.resolve("shop.example", 443) == ["192.0.2.2"]


async def test_a_look_up_that_failed_is_made_again() -> None:
    slow = Slow()
    slow.may.set()
    slow.fails = True
    names = KnownNames(slow)
    with pytest.raises(socket.gaierror):
        await names.resolve("shop.example", 443)
    slow.fails = False
    assert await names.resolve("shop.example", 443) == ["192.0.2.2"]
