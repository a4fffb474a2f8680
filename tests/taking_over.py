"""A worker who hangs once amid a reading, while another one takes it over: at once, or, where what
the first one writes does not stand yet, as soon as it does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.databases import until_waiting

from paydesk.database.pool import Database


class Hanging:
    """Hangs once, before it does what is called `name`, until `take_over` has come to its end, or
    waits for what it holds itself; `is_over` waits for that end.
    """

    def __init__(self, database: Database, take_over: Callable[[], Awaitable[None]]) -> None:
        self._database = database
        self._take_over = take_over
        self._taking: asyncio.Future[None] | None = None

    def at(self, patch: pytest.MonkeyPatch, owner: object, name: str) -> None:
        """Have it hang there."""
        honest = getattr(owner, name)

        async def late(*given: Any, **named: Any) -> Any:
            if self._taking is None:
                self._taking = asyncio.ensure_future(self._take_over())
                await until_waiting(self._database, self._taking, query="update %_reading %")
            return await honest(*given, **named)

        patch.setattr(owner, name, late)

    async def is_over(self) -> None:
        """Wait until it is taken over; it did hang."""
        assert self._taking is not None, "it came by there"
        await asyncio.wait_for(self._taking, 30)
