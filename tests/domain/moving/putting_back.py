"""Two cells and a home of their own, each of whose databases may come back from an earlier moment,
whatever the others have done since.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace

import asyncpg
from tests.conftest import database_at, migrated_database
from tests.databases import drop_database
from tests.domain.moving.play import HERE, THERE, Cell, Killed, Play, killing
from tests.processes import PATIENCE

from paydesk.adapters.vault import Vault, generate_key_setting
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database, connected
from paydesk.domain.cells import directory
from paydesk.domain.cells.adding import add_cell
from paydesk.domain.cells.directory import Entry, Kind, enter, find_cell
from paydesk.domain.moving.copying import Side
from paydesk.domain.moving.moving import move_merchant
from paydesk.domain.moving.steps import Move, Step

HOME = 7


@dataclass
class Past:
    """A play with a home cell, and copies of its databases as they were."""

    play: Play
    home: Side
    server_url: str
    stack: AsyncExitStack

    @property
    def going(self) -> Move:
        """The merchant goes from the one cell to the other."""
        return replace(self.play.move, home=self.home.database)

    @property
    def going_home(self) -> Move:
        """It goes on from there to the home cell."""
        return Move(self.play.there.side, self.home, self.home.database, self.play.merchant.id, HOME)

    async def until(self, step: Step | None) -> None:
        """The move goes on until it dies at a step; none: to its end."""
        with suppress(Killed):
            await move_merchant(self.going, passed=killing(step) if step else lambda _: None)

    async def copy(self, which: str) -> Database:
        """What a database is at this moment, as another one."""
        url = await copied(self.stack, self.server_url, self._of(which))
        return await self.stack.enter_async_context(connected(url))

    def put_back(self, which: str, database: Database) -> None:
        """A database is what it was when it was copied."""
        if which == "home":
            self.home = replace(self.home, database=database)
        else:
            cell: Cell = getattr(self.play, which)
            back = replace(cell, database=database, desk=replace(cell.desk, database=database))
            self.play = replace(self.play, here=back) if which == "here" else replace(self.play, there=back)

    def _of(self, which: str) -> Database:
        cell: Cell | Side = self.home if which == "home" else getattr(self.play, which)
        return cell.database

    async def open_in(self) -> list[int]:
        """The cells in which somebody may write something of the merchant's."""
        return [number for number, cell in ((HERE, self.play.here), (THERE, self.play.there)) if await self._open(cell)]

    async def led_to(self) -> int | None:
        """The cell that the directory leads to."""
        found = await find_cell(self.home.database, Kind.merchant, str(self.play.merchant.id))
        return None if found is None else found.number

    async def _open(self, cell: Cell) -> bool:
        return await self.play.is_open(cell)


async def copied(stack: AsyncExitStack, server_url: str, database: Database) -> str:
    """The address of what a database is at this moment, for the length of the stack."""
    admin = await asyncpg.connect(server_url)
    stack.push_async_callback(admin.close)
    name, now = f"paydesk_test_{secrets.token_hex(6)}", await database.fetchval("select current_database()")
    async with asyncio.timeout(PATIENCE):
        while not await _is_copied(admin, now, name):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    # Whoever goes on with it takes no connection that just hears of its end.
    await database.expire_connections()
    stack.push_async_callback(drop_database, admin, name)
    return database_at(server_url, name)


async def _is_copied(admin: asyncpg.Connection, database: str, name: str) -> bool:
    """Whether nobody came back to it, or swept it, at that moment."""
    await admin.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = $1", database)
    try:
        await admin.execute(f"create database {name} template {database} strategy file_copy")
    except asyncpg.ObjectInUseError:
        return False
    return True


@asynccontextmanager
async def with_a_past(play: Play, server_url: str) -> AsyncIterator[Past]:
    """The play, whose directory is kept by a third cell."""
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(migrated_database(server_url, cell=HOME))
        database = await stack.enter_async_context(connected(url))
        for number in (HERE, THERE, HOME):
            cell = directory.Cell(number, f"https://pay{number}.test", "http://inside")
            await add_cell(database, cell, database_id=str(number), now=utc_now())
        await enter(database, [Entry(Kind.merchant, str(play.merchant.id), play.merchant.id)], HERE, now=utc_now())
        secret = play.here.settings.secret_key.get_secret_value()
        vault = Vault.from_settings(vault_keys=generate_key_setting(), secret_key=secret)
        yield Past(play, Side(database, vault), server_url, stack)
