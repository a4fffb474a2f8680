"""A copy of a deployment's database, for staging:
it has no live side, and reaches nobody's shop or customers.

What must not happen in it is stopped where it begins. Without a live acquirer, which no process
starts with, nothing at a bank can change; the database itself refuses the intent of whatever would
move live money; what waited to be sent is marked as not sent, and what comes later goes only to
networks that the operator names for copies.
"""

from __future__ import annotations

from dataclasses import dataclass

from paydesk.core.errors import Conflict, SetupError
from paydesk.database.pool import Database
from paydesk.database.statements import load_statements
from paydesk.domain.operations.machinery import SILENT
from paydesk.domain.operations.restoring import GAP, begin_epoch

queries = load_statements(__package__ or "", "copying.sql")

SUSPENDED_BECAUSE = "This is a copy for staging: it takes no live payments."
NOT_SENT = "not sent: this database is a copy"

_GUARDED = ("payment_attempt", "movement", "card_change")
"""Tables of intents; a step of the schema has the trigger."""


@dataclass(frozen=True, slots=True)
class Copy:
    """What making a copy harmless came to: its own tag, and how much is not sent or was suspended.

    `declared` is false if it had been declared before, and nothing was changed.
    """

    tag: str
    declared: bool
    pingbacks: int
    mails: int
    merchants: int


async def is_a_copy(database: Database) -> bool:
    """Whether the database was declared a copy of another deployment's."""
    return bool(await queries.is_a_copy(database))


async def make_harmless(database: Database, *, gap: int = GAP) -> Copy:
    """Declare the database a copy, for good, whose ids go on behind a gap: none is the other's.
    Moves no money.

    Raises: Conflict while workers work on it.
    """
    if await queries.workers_alive(database, silent=SILENT):
        raise Conflict("workers are at work on this database: stop serve and work, and run this again")
    if not await is_a_copy(database):
        await begin_epoch(database, gap=gap)
    async with database.acquire() as connection, connection.transaction():
        for table in _GUARDED:
            await connection.execute(f"alter table {table} enable trigger copies_move_no_live_money")
        copied = await queries.declare_copy(connection, reason=SUSPENDED_BECAUSE, why_unsent=NOT_SENT)
    return Copy(**dict(copied))


async def refuse_live_acquirer(database: Database, acquirer: str) -> None:
    """Make sure that nobody works on a copy with a live acquirer;
    `acquirer` is its name, empty for none.

    Raises: SetupError.
    """
    if acquirer and await is_a_copy(database):
        raise SetupError(
            f"this database is a copy of another deployment's, and takes no live payments: take "
            f"PAYDESK_LIVE_ACQUIRER={acquirer} and its key out of the settings"
        )
