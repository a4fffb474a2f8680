"""Banks that are not well, made once: each stands before an honest one, which has the money
and keeps the record.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn

from tests.adapters.acquirers.simulator.lying import Lies, LyingAcquirer

from paydesk.adapters.acquirers.hosted_pages import Capabilities, Page, PageRequest
from paydesk.adapters.acquirers.interface import Acquirer, AcquirerRefused, Outcome, Purchase
from paydesk.adapters.acquirers.simulator import Bank, SimulatedAcquirer


def answering(honest: Acquirer, **calls: Callable[..., Awaitable[Any]]) -> LyingAcquirer:
    """A bank of which some calls (`authorize=…`) are answered by others, and the rest honestly."""
    bank = LyingAcquirer(honest, Lies())
    for name, call in calls.items():
        assert callable(getattr(bank, name))
        setattr(bank, name, call)
    return bank


def ending_in(error: Exception) -> Callable[..., Awaitable[NoReturn]]:
    """A call that reaches nobody, and ends in this."""

    async def call(*_asked: Any, **_named: Any) -> NoReturn:
        raise error

    return call


class WithoutPages:
    """A bank that hosts no page: what it can't do is never asked of it."""

    capabilities: Capabilities = Capabilities()

    async def open_page(self, wanted: PageRequest) -> Page:
        raise AcquirerRefused("this bank hosts no page")

    async def find_page(self, key: str, reference: str) -> Page:
        raise AcquirerRefused("this bank hosts no page")

    async def end_page(self, key: str, reference: str) -> Page:
        raise AcquirerRefused("this bank hosts no page")


class HeardBank(LyingAcquirer):
    """An honest bank that keeps what it was asked: `purchases`, by a customer or again by us."""

    def __init__(self, honest: Acquirer) -> None:
        super().__init__(honest, Lies())
        self.purchases: list[Purchase] = []

    async def authorize(self, purchase: Purchase) -> Outcome:
        self.purchases.append(purchase)
        return await super().authorize(purchase)

    async def charge_stored(self, purchase: Purchase) -> Outcome:
        self.purchases.append(purchase)
        return await super().charge_stored(purchase)


class HeldBank(LyingAcquirer):
    """Decides at once, and `asked` says so; its answer waits until `let_go`."""

    def __init__(self, honest: Acquirer) -> None:
        super().__init__(honest, Lies())
        self.asked, self.let_go = asyncio.Event(), asyncio.Event()

    async def authorize(self, purchase: Purchase) -> Outcome:
        return await self._late(await super().authorize(purchase))

    async def charge_stored(self, purchase: Purchase) -> Outcome:
        return await self._late(await super().charge_stored(purchase))

    async def _late(self, answer: Outcome) -> Outcome:
        self.asked.set()
        await self.let_go.wait()
        return answer


class LiveBank(SimulatedAcquirer):
    """The simulated bank under another name: it stands in for a real one."""

    name = "live bank"

    def __init__(self, bank: Bank) -> None:
        super().__init__(bank, base_url="http://pay.test")
