"""Folding changes of the reserve into sums of when it is released, so that its calendar is read in
a moment. The changes themselves are written by the schema's trigger.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from paydesk.database.pool import Database
from paydesk.database.statements import load_statements

queries = load_statements(__package__ or "", "reserves.sql")

_KEPT = timedelta(days=1)
"""How long sums of nothing are kept: their last change has long been made."""


async def fold_reserves(database: Database, *, now: datetime, most: int = 5000) -> int:
    """Add changes to the sums, and forget sums of nothing; returns how many. Moves no money."""
    folded, last = 0, most
    while last == most:
        last = int(await queries.fold_reserves(database, most=most))
        folded += last
    await queries.forget_released(database, before=now - _KEPT)
    return folded
