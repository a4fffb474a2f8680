"""A shop: one side of a merchant. Everybody names it, and it names nobody."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shop:
    """One side of a merchant, live or test; the two never meet."""

    merchant_id: int
    live: bool
