"""Who sells: what decides whether a merchant may take money, where no form of theirs says who
they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from paydesk.core.errors import NotFound
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any
from paydesk.database.statements import load_statements

queries = load_statements(__package__ or "", "sellers.sql")


class Selling(Protocol):
    """What decides whether somebody may take live payments, however they are known."""

    @property
    def went_live_at(self) -> datetime | None:
        """When they went live, None if not yet."""

    @property
    def suspended(self) -> bool:
        """Whether an operator has stopped them."""

    @property
    def shipped_goods(self) -> bool:
        """Whether they take the money once goods are shipped."""

    @property
    def in_a_copy(self) -> bool:
        """Whether the database is a staging copy, which has no live side."""


@dataclass(frozen=True, slots=True)
class Seller:
    """A merchant as one who sells.

    `key_id` is their newest key pair that may sign, None if they have none, and `test_clock` how
    far their test side is ahead; with `signs_quantities` they sell subscriptions to several of a
    thing.
    """

    merchant_id: int
    key_id: int | None
    went_live_at: datetime | None
    suspended: bool
    shipped_goods: bool
    signs_quantities: bool
    test_clock: timedelta
    in_a_copy: bool


async def find_seller(database: Database, merchant_id: int, *, now: datetime) -> Seller:
    """A merchant as one who sells; `now` is real time. Raises: NotFound."""
    found = record_if_any(Seller, await queries.find_seller(database, merchant_id=merchant_id, now=now))
    if found is None:
        raise NotFound(f"there is no merchant {merchant_id}")
    return found
