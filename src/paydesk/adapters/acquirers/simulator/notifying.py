"""What the simulated bank tells of its pages of its own accord.

As real acquirers do it tells at once, so that it may be faster than the customer's browser, once
more than needed, and again later if nobody listens. It goes to the address that was given with the
page, and names the page alone: who hears it asks the bank. What is not heard in the end is lost,
and so is what a bank that stops has not told yet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import aiohttp
import msgspec
import structlog

log = structlog.get_logger()

PAUSES: Final = (0.0, 1.0, 5.0, 30.0, 120.0)
"""Seconds before each time that the same is told."""

ENOUGH: Final = 2
"""How often it has to be heard: deliveries are doubled now and then, so that ours always are."""

_PATIENCE: Final = aiohttp.ClientTimeout(total=5)
_MOST_UNTOLD: Final = 1000


class Notifier:
    """Tells of pages in the background, until it is closed; `pauses` as PAUSES."""

    def __init__(self, pauses: Sequence[float] = PAUSES) -> None:
        self._pauses = tuple(pauses)
        self._untold: set[asyncio.Task[None]] = set()

    def tell(self, address: str, reference: str) -> None:
        """Tell at an address that something has happened to a page; an empty one hears nothing."""
        if not address.startswith(("https://", "http://")) or len(self._untold) >= _MOST_UNTOLD:
            return
        task = asyncio.create_task(self._tell(address, reference))
        self._untold.add(task)
        task.add_done_callback(self._untold.discard)

    async def close(self) -> None:
        """Tell nothing more."""
        for task in self._untold:
            task.cancel()
        await asyncio.gather(*self._untold, return_exceptions=True)

    async def _tell(self, address: str, reference: str) -> None:
        body, heard = msgspec.json.encode({"page": reference}), 0
        for pause in self._pauses:
            await asyncio.sleep(pause)
            heard += await _is_heard(address, body)
            if heard == ENOUGH:
                return
        log.info("nobody listens to the simulated bank", page=reference, heard=heard)


async def _is_heard(address: str, body: bytes) -> bool:
    """Whether a notification is taken."""
    headers = {"Content-Type": "application/json"}
    try:
        async with (
            aiohttp.ClientSession(timeout=_PATIENCE) as session,
            session.post(address, data=body, headers=headers, allow_redirects=False) as answer,
        ):
            return answer.status == 200
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError):
        return False
