"""Folding movements of monthly recurring revenue into sums of their days, so that a report of
years reads few rows. The movements themselves are written by the schema's trigger.
"""

from __future__ import annotations

from paydesk.database.pool import Database
from paydesk.database.statements import load_statements

queries = load_statements(__package__ or "", "folding.sql")


async def fold_movements(database: Database, *, most: int = 5000) -> int:
    """Count movements in the sums of their days; returns how many. Moves no money."""
    folded, last = 0, most
    while last == most:
        last = int(await queries.fold_movements(database, most=most))
        folded += last
    return folded
