"""Outcomes that nobody knows yet, over all merchants, and the wish that an acquirer be asked
at once.

Moves no money: the janitor asks, by the key that was committed, and it alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from paydesk.core.errors import NotFound
from paydesk.core.paging import EARLIEST, Place
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.domain.accounts.audit import Action, Actor, record
from paydesk.domain.merchants.shop import Shop

queries = load_statements(__package__ or "", "open_outcomes.sql")


class OpenKind(StrEnum):
    """What was asked of the acquirer."""

    PAYMENT = "payment"
    RENEWAL = "renewal"
    CHARGE = "charge"
    """A saved card is charged without its customer."""
    UNDOING = "undoing"
    """A late approval is being voided."""
    CAPTURE = "capture"
    VOID = "void"
    REFUND = "refund"

    @property
    def is_attempt(self) -> bool:
        """Whether it is an attempt to take money, not a movement after one."""
        return self in (OpenKind.PAYMENT, OpenKind.RENEWAL, OpenKind.CHARGE, OpenKind.UNDOING)


@dataclass(frozen=True, slots=True)
class OpenOutcome:
    """One question without an answer: asked `since`, looked up `lookups` times, next at `lookup_at`
    (real times, UTC).

    `alerted_at` is set once it was open for a day.
    """

    merchant_id: int
    merchant_name: str
    live: bool
    id: int
    payment_id: int
    kind: OpenKind
    amount: Decimal
    currency: str
    acquirer: str
    since: datetime
    lookups: int
    lookup_at: datetime
    alerted_at: datetime | None


async def open_outcomes(
    database: Database, *, begun_before: datetime, most: int, after: Place | None = None
) -> list[OpenOutcome]:
    """What was begun before a time (real, UTC) and has no outcome, longest open first,
    after a place of that order.
    """
    place = after or Place(EARLIEST, 0)
    rows = queries.open_outcomes(database, begun_before=begun_before, after_at=place.at, after_id=place.id, most=most)
    return await records_of(OpenOutcome, rows)


async def ask_now(database: Database, actor: Actor, shop: Shop, kind: OpenKind, row_id: int, *, now: datetime) -> None:
    """Let the janitor look at once: it asks by the committed key, and never sends a purchase again
    or makes a key.

    Raises: NotFound if it has an outcome by now.
    """
    ask = queries.ask_about_attempt if kind.is_attempt else queries.ask_about_movement
    async with database.acquire() as connection, connection.transaction():
        payment_id = await ask(connection, merchant_id=shop.merchant_id, live=shop.live, id=row_id, now=now)
        if payment_id is None:
            raise NotFound("this has an outcome by now")
        await record(
            connection,
            actor,
            Action.outcome_asked,
            now=now,
            shop=shop,
            subject=f"payment {payment_id}",
            details={"what": str(kind), "id": row_id},
        )
