"""Which other cell has what was not found in this one.

This cell's copy of the directory is asked first; what it knows nothing of, or leads here for though
its merchant has gone, the home cell is asked, since the copy may be behind: what home doesn't know
is nowhere, for everything is entered there before it is made. While home can't be asked, nobody
knows; nor where home leads here, too: it has come back from before its merchant had moved.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Final

import structlog

from paydesk.adapters.vault import Vault
from paydesk.core.errors import IN_A_MOMENT, Unavailable
from paydesk.database.impatience import answered_within
from paydesk.database.pool import AWAY, Database, connected
from paydesk.domain.cells.directory import Cell, Kind, Standing, find_cell, has_merchant_of, name_of, this_cell
from paydesk.domain.cells.fencing import fences
from paydesk.loops.repeating import repeat

log = structlog.get_logger()

LOOK_EVERY: Final = 10.0
"""Seconds between two looks whether there are cells, and who has left this one."""

PATIENCE: Final = 2.0
"""Seconds that home gets for an answer, and that it is left alone for once it gave none."""

_AT_ONCE: Final = 2
_NO_LASTS: Final = 10.0
"""Seconds that home's "no" is believed: a key is entered there before anybody has seen it."""
_MOST_NOES: Final = 10_000


class NotKnownYet(Unavailable):
    """Nobody can say just now whether something is in another cell."""

    retry_after = IN_A_MOMENT

    def __init__(self) -> None:
        super().__init__(
            "it is not known here yet whom this belongs to, and the cell that knows can't be asked just now; nothing "
            "was done, try again"
        )


class Home:
    """The home cell's own directory, as other cells may ask it: few at a time, and not again at
    once for what it does not know or while it does not answer.
    """

    def __init__(self, database: Database, clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._clock = clock
        self._noes: dict[tuple[Kind, str], float] = {}
        self._away_until = float("-inf")

    def is_no(self, kind: Kind, name: str) -> bool:
        """Whether it has said just now that it doesn't know this."""
        return self._noes.get((kind, name), float("-inf")) > self._clock()

    async def find(self, kind: Kind, name: str) -> Cell | None:
        """The cell of what is called so; None if it is in none. Raises: NotKnownYet."""
        if self._clock() < self._away_until:
            raise NotKnownYet
        try:
            found = await answered_within(PATIENCE, find_cell(self._database, kind, name))
        except AWAY as error:
            self._away_until = self._clock() + PATIENCE
            log.warning("the home cell's directory can't be asked", why=f"{type(error).__name__}: {error}")
            raise NotKnownYet from error
        if found is None:
            self._note_no(kind, name)
        return found

    def _note_no(self, kind: Kind, name: str) -> None:
        if len(self._noes) >= _MOST_NOES:
            self._noes.clear()
        self._noes[kind, name] = self._clock() + _NO_LASTS


class Finder:
    """Looks up what is not in this cell; `home` is None at home itself, and where its address is
    not set.
    """

    def __init__(self, database: Database, vault: Vault, home: Home | None) -> None:
        self.standing = Standing(number=0, home=None)
        self.has_looked = False
        self.gone: frozenset[int] = frozenset()
        self._database = database
        self._vault = vault
        self._home = home

    async def look_at_standing(self) -> None:
        """Look whether there are cells, which of them this is, and which merchants it had once:
        what is here of these is what was.
        """
        self.standing = await this_cell(self._database)
        if self.standing.has_cells:
            found = await fences(self._database)
            self.gone = frozenset(one.merchant_id for one in found if one.moved_at is not None)
        self.has_looked = True

    async def find_other(self, kind: Kind, value: str, may_ask: Callable[[], bool]) -> Cell | None:
        """The other cell that has it; None if what is said here holds, since it is nowhere else.

        `may_ask` is whether home may be asked for whoever wants to know, which uses up a turn.
        Raises: NotKnownYet; one of AWAY if this cell's own database is.
        """
        name = name_of(self._vault, kind, value)
        found = await find_cell(self._database, kind, name)
        is_behind = await self._may_be_behind(found, kind, name)
        if is_behind and not self.standing.is_home:
            found = await self._ask_home(kind, name, may_ask)
        if found is None or found.number != self.standing.number:
            return found
        if is_behind and not await has_merchant_of(self._database, kind, name):
            log.warning("the directory leads here for what is not here; see: paydesk cell check", kind=kind)
            raise NotKnownYet
        return None

    async def find_at_home(self, kind: Kind, value: str, may_ask: Callable[[], bool]) -> Cell | None:
        """The other cell that has it as home says, since this one's copy was wrong; None if there
        is none. Raises: NotKnownYet.
        """
        if self.standing.is_home:
            return None
        found = await self._ask_home(kind, name_of(self._vault, kind, value), may_ask)
        return found if found is not None and found.number != self.standing.number else None

    async def _may_be_behind(self, found: Cell | None, kind: Kind, name: str) -> bool:
        """Whether what this cell has of the directory can't be believed: it knows nothing, or still
        leads here to who has moved.
        """
        if found is None:
            return True
        return found.number == self.standing.number and not await has_merchant_of(self._database, kind, name)

    async def _ask_home(self, kind: Kind, name: str, may_ask: Callable[[], bool]) -> Cell | None:
        if self._home is None:
            raise NotKnownYet
        if self._home.is_no(kind, name):
            return None
        if not may_ask():
            raise NotKnownYet
        return await self._home.find(kind, name)


@asynccontextmanager
async def finder_at_work(database: Database, vault: Vault, home_url: str) -> AsyncIterator[Finder]:
    """A finder for the length of a block; `home_url` is the home cell's database, empty at home."""
    async with AsyncExitStack() as stack:
        home = None
        if home_url:
            pool = connected(home_url, most=_AT_ONCE, least=0, name="home", patience=PATIENCE)
            home = Home(await stack.enter_async_context(pool))
        finder, stop = Finder(database, vault, home), asyncio.Event()
        with suppress(*AWAY):
            await finder.look_at_standing()
        looking = asyncio.create_task(
            repeat("cells", finder.look_at_standing, stop, rest=LOOK_EVERY, beats=False), name="cells"
        )
        try:
            yield finder
        finally:
            stop.set()
            await looking
