"""One row that is corrupted on purpose, and the rule of `paydesk check` that must name it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Corruption:
    """How a row is corrupted (by a statement that returns the id to be named), and which rule
    names it in which table; `after` is what was paid by, or what happened, before.
    """

    rule: str
    table: str
    sql: str
    after: Any = None
