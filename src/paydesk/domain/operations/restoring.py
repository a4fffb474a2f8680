"""After a restore: ids that were given out since the backup are never given again,
and a new epoch begins.
"""

from __future__ import annotations

from dataclasses import dataclass

from paydesk.database.pool import Database
from paydesk.database.records import record_of
from paydesk.database.statements import load_statements

queries = load_statements(__package__ or "", "restoring.sql")

GAP = 10_000_000
"""How many ids of each kind are left out: more than are given out between a backup
and its restore."""


@dataclass(frozen=True, slots=True)
class Begun:
    """What a restore began: how many sequences go on behind a gap,
    and the number of the new epoch.
    """

    sequences: int
    epoch: int


async def begin_epoch(database: Database, *, gap: int = GAP) -> Begun:
    """Raise every sequence by a gap of ids, and begin a new epoch. Moves no money.

    Shops know ids that the database has forgotten, and take one that comes twice for the
    same payment.
    """
    return record_of(Begun, await queries.restored(database, gap=gap))
