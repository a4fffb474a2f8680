"""A merchant's way from one cell to another, as all who go, cancel and clear up know it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from paydesk.database.pool import Database
from paydesk.domain.moving.copying import Side


class Step(StrEnum):
    """What a move has come to."""

    copied = "copied"
    followed = "followed"
    fenced = "fenced"
    closed = "closed"
    completed = "completed"
    moved = "moved"
    switched = "switched"
    opened = "opened"
    forgotten = "forgotten"


@dataclass(frozen=True, slots=True)
class Move:
    """A merchant and the two cells.

    `home` is the database whose directory leads to them, None where there are no cells in it.
    Whether both have one simulated bank, and the target takes live payments, its settings say.
    """

    source: Side
    target: Side
    home: Database | None
    merchant_id: int
    to: int
    same_simulator: bool = False
    serves_live: bool = True


Passed: TypeAlias = Callable[[Step], None]
"""What hears of each step that was done."""
