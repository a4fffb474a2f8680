"""Customers who go to pages of the acquirer's as no plan says: they pay on two at the same moment,
don't come back, or leave without paying.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Iterable
from contextlib import suppress

from tests.faults.customers import Customer, Later

FIRST, SECOND = "adda@example.com", "ada@example.com"
"""A page for a mistyped address is none to be led to again once it is mended."""
AT_ONCE = 8
_APART = 0.3
"""Seconds: at the same moment, as browsers go."""


async def pay_on_both(customer: Customer, chance: random.Random, *, both_open: bool) -> None:
    """Pay on two pages at the same moment: on both that are open, or on the first one while the
    second is still asked for.
    """
    first = await _to_page(customer, FIRST)
    second = await _to_page(customer, SECOND) if both_open else ""
    ways = (customer.browse(first), customer.browse(second) if both_open else _go_on(customer))
    await asyncio.gather(*(_after(chance.uniform(0, _APART), way) for way in ways))


async def pay_and_go(customer: Customer) -> None:
    """Pay on the acquirer's page, and don't come back."""
    page = await _to_page(customer, FIRST)
    with suppress(Later):
        await customer.browse(page)


async def leave(customer: Customer) -> None:
    """Have the acquirer's page open, and never pay there."""
    await _to_page(customer, FIRST)


async def _to_page(customer: Customer, email: str) -> str:
    """Where the customer is led to, once the service and its acquirer are there."""
    while True:
        with suppress(Later):
            return await customer.to_their_page(email)
        await asyncio.sleep(_APART)


async def _go_on(customer: Customer) -> None:
    await customer.browse(await customer.to_their_page(SECOND))


async def _after(pause: float, way: Awaitable[None]) -> None:
    """Go a way as far as it leads."""
    await asyncio.sleep(pause)
    with suppress(Later):
        await way


async def at_once(visits: Iterable[Awaitable[None]]) -> None:
    """Have some customers there at a time."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def let_in(visit: Awaitable[None]) -> None:
        async with gate:
            await visit

    await asyncio.gather(*map(let_in, visits))
