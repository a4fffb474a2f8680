"""Connections to a test's database that outlive the service they were opened for: the next
service's pools get them, with the statements that they have prepared.

A service of its own for each test would else spend most of its time, and of the server's, on
connections and plans. To a pool they are new: it meets them first, as any other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeAlias
from unittest.mock import patch

import asyncpg

from paydesk.database import pool
from paydesk.database.durability import ConfirmedConnection
from paydesk.database.servers import Servers

MOST = 8
"""How many are kept of one kind: what one test opened beyond that is closed with its service."""

Kind: TypeAlias = tuple[str, Any, str]
"""What tells connections apart: the address, the time that a statement may take,
and the session's name.
"""


class WarmConnection(ConfirmedConnection):
    """A connection that its pool does not close but lays aside."""

    _pool_holder: Any
    laid_aside: list[WarmConnection] | None = None
    """Where its kind is kept."""

    async def close(self, *, timeout: float | None = None) -> None:
        """Leave the pool; stay open if nothing is under way on it."""
        kept, holder = self.laid_aside, self._pool_holder and self._pool_holder()
        if kept is None or holder is None or len(kept) >= MOST or self.is_closed() or self.is_in_transaction():
            await super().close(timeout=timeout)
            return
        self._pool_holder = None
        holder._release_on_close()
        kept.append(self)


class WarmConnections:
    """The connections of one test run that no service has just now."""

    def __init__(self) -> None:
        self._kept: defaultdict[Kind, list[WarmConnection]] = defaultdict(list)

    @contextmanager
    def given(self) -> Iterator[None]:
        """Let the pools that are made within the block take connections from here."""
        stock = self

        class WithStock(Servers):
            async def connect(self, _url: str, **options: Any) -> asyncpg.Connection:
                kept = stock._kept[_url, options["command_timeout"], options["server_settings"]["application_name"]]
                while kept:
                    if not (connection := kept.pop()).is_closed():
                        return connection
                opened = await super().connect(_url, **options)
                opened.laid_aside = kept
                return opened

        with patch.object(pool, "Servers", WithStock), patch.object(pool, "ConfirmedConnection", WarmConnection):
            yield

    async def close(self) -> None:
        """End them all."""
        for kept in self._kept.values():
            for connection in kept:
                connection.laid_aside = None
                await connection.close()
        self._kept.clear()


@asynccontextmanager
async def warm_connections() -> AsyncIterator[WarmConnections]:
    """A stock of connections, for the length of a block."""
    stock = WarmConnections()
    try:
        yield stock
    finally:
        await stock.close()
