"""Entering what is new in the home cell's directory before it is there: merchants, keys, addresses.

What is made is written in its cell's transaction, then entered at home, then committed: what the
cell itself refuses is never entered, and what is in use is entered. If the cell dies in between,
the entry is taken up by its next try, or taken out by `paydesk cell check --mend`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import asyncpg
import structlog

from paydesk.adapters.vault import Vault
from paydesk.core.errors import Unavailable
from paydesk.database.impatience import answered_within
from paydesk.database.pool import AWAY, Database
from paydesk.database.statements import Connection
from paydesk.domain.cells.directory import Entry, Kind, TakenElsewhere, account_name, enter, name_of, this_cell

PATIENCE = 5.0
"""Seconds that home may take: meanwhile the new rows wait for their commit."""

REFUSED = (
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.InsufficientPrivilegeError,
)
"""Raised when home does not let this cell's role in, or write: its password was changed, say."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Entering:
    """How a process enters what it makes; not at all, at no cost, where no setting speaks of cells.

    `asks` is whether one does. In the home cell it is entered in the same transaction, elsewhere by
    `home`, the home cell's database.
    """

    asks: bool = False
    home: Database | None = None

    async def enter_person(
        self, connection: Connection, vault: Vault, email: str, *, now: datetime, proven: bool = False
    ) -> None:
        """Enter a person's address, as `enter` does. Who has `proven` that it is theirs may have an
        account in another cell already.

        Raises: TakenElsewhere; Unavailable.
        """
        try:
            await self.enter(connection, [email_to_enter(vault, email)], now=now)
        except TakenElsewhere:
            if not proven:
                raise
            own = (await this_cell(connection)).number
            await self.enter(connection, [account_to_enter(vault, email, own)], now=now)

    async def enter(
        self, connection: Connection, entries: Sequence[Entry], *, now: datetime, patience: float = PATIENCE
    ) -> None:
        """Enter what the connection's transaction has just made, as its last step. `now` is
        real time, UTC; `patience` is for how many seconds home is waited for.

        Raises: TakenElsewhere; Unavailable if home can't be asked: both end the transaction.
        """
        if not self.asks:
            return
        # Asked each time: a cell is added while its processes run.
        standing = await this_cell(connection)
        if not standing.has_cells:
            return
        if standing.is_home:
            await enter(connection, entries, standing.number, now=now)
            return
        if self.home is None:
            log.error("nothing new can be made in this cell: PAYDESK_HOME_DATABASE_URL is not set")
            raise _not_now()
        try:
            await answered_within(patience, enter(self.home, entries, standing.number, now=now))
        except AWAY as error:
            log.warning("the home cell's database can't be reached", why=type(error).__name__)
            raise _not_now() from error
        except REFUSED as error:
            log.error("the home cell's database refuses this cell's role", why=type(error).__name__)
            raise _not_now() from error


ALONE = Entering()
"""Of a deployment whose settings speak of no cells."""


def _not_now() -> Unavailable:
    return Unavailable(
        "new accounts, keys and e-mail addresses can't be made just now, since the directory of all cells can't be "
        "reached; nothing was changed, and all else goes on. Try again later; operators check PAYDESK_HOME_DATABASE_URL"
    )


def keys_to_enter(vault: Vault, merchant_id: int, *, public: str, private_lookup: bytes) -> tuple[Entry, Entry]:
    """The lines of a key pair."""
    return (
        Entry(Kind.public_key, name_of(vault, Kind.public_key, public), merchant_id),
        Entry(Kind.private_key, private_lookup.hex(), merchant_id),
    )


def merchant_to_enter(merchant_id: int) -> Entry:
    """The line of a merchant."""
    return Entry(Kind.merchant, str(merchant_id), merchant_id)


def email_to_enter(vault: Vault, email: str) -> Entry:
    """The line of a person's address."""
    return Entry(Kind.email, name_of(vault, Kind.email, email))


def account_to_enter(vault: Vault, email: str, cell: int) -> Entry:
    """The line of a person's account in a cell, where another is their first."""
    return Entry(Kind.account, account_name(name_of(vault, Kind.email, email), cell))
