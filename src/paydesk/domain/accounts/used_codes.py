"""A code that was used in one cell is used in all: who has gone along with a merchant has the same
second factor, and the same recovery codes, in two.

Home notes it by a line of the directory, before the session opens. Where home does not answer, or
does not know this cell, a code counts by what this cell's copy knows: nobody is kept out by that.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import structlog

from paydesk.core.errors import Unavailable
from paydesk.database.statements import Connection
from paydesk.domain.accounts.access_needs import Gate
from paydesk.domain.cells.directory import (
    Entry,
    Kind,
    TakenElsewhere,
    cells_of_person,
    find_cell,
    forget_lines,
    name_of,
    this_cell,
)

PATIENCE = 2.0
"""Seconds that home may take: meanwhile somebody waits for their session."""

STEPS_KEPT = timedelta(minutes=10)
"""Longer than an app's code is good for, however far clocks are apart that cells believe."""

log = structlog.get_logger()


async def is_used_elsewhere(
    connection: Connection, gate: Gate, kind: Kind, code: str, *, email: str, now: datetime
) -> bool:
    """Whether a code that is right here was used in another cell; from now on it is used in this
    one. Who has an account in this cell alone is not asked for.
    """
    standing = await this_cell(connection)
    if not standing.has_cells or len(await cells_of_person(connection, gate.vault, email)) < 2:
        return False
    name = name_of(gate.vault, kind, code)
    try:
        await gate.entering.enter(connection, [Entry(kind, name)], now=now, patience=PATIENCE)
    except TakenElsewhere as refused:
        if refused.is_there:
            return True
        log.error("home does not know this cell; see: paydesk cell check")
    except Unavailable:
        pass
    else:
        return False
    used = await find_cell(connection, kind, name)
    log.warning("home can't be told of a code that was used: it may be used once more in another cell")
    return used is not None and used.number != standing.number


async def forget_used_steps(database: Connection, *, now: datetime) -> None:
    """At home, drop what is noted of codes that no app shows any more."""
    if (await this_cell(database)).is_home:
        await forget_lines(database, Kind.totp_step, before=now - STEPS_KEPT)
