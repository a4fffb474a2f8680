"""Refunds that are asked for without a key: one whose caller was never told
of it is not made once more.

Old clients send no Idempotency-Key and simply repeat a call that failed. A movement of theirs is
`unanswered` from its intent on, in the same row, until the process that began it has its outcome or
has told that it is on its way.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from paydesk.core.errors import Busy
from paydesk.core.wording import worded
from paydesk.database.durability import make_durable
from paydesk.database.pool import AWAY, Database
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.database.surely import PATIENCE
from paydesk.domain.cells.fencing import Fenced
from paydesk.domain.merchants.shop import Shop

queries = load_statements(__package__ or "", "asked_again.sql")

TAKEN_FOR_THE_SAME = timedelta(days=1)
"""How long after a refund of which nobody was told an equal one is taken for its repeat."""

AT_WORK = timedelta(seconds=PATIENCE)
"""Younger than this, a refund may still be told of by the process that began it;
an equal one waits for that."""

LONGEST_WAIT = 3 * PATIENCE
_SOON = 0.02


@dataclass(frozen=True, slots=True)
class _Unanswered:
    """A movement that nobody was told of, for so long;
    `gives_all` if it left nothing of its payment.
    """

    id: int
    amount: Decimal
    age: timedelta
    gives_all: bool


async def find_unanswered(
    database: Database, shop: Shop, payment_id: int, amount: Decimal | None, *, told_later: bool = False
) -> int | None:
    """The refund or void of which an equal request, without a key, is the repeat;
    None if this one is a new wish.

    It counts as told of from now on, unless it is `told_later`. Equal ones that are at work are
    waited for. Moves no money.

    Raises: Busy if they have no end.
    """
    until = time.monotonic() + LONGEST_WAIT
    while (same := await _equal(database, shop, payment_id, amount)) is not None:
        if same.age >= AT_WORK and await (_keep(database) if told_later else _take(database, shop, same.id)):
            return same.id
        if time.monotonic() > until:
            raise Busy(
                worded(
                    "equal refunds of payment %(payment_id)s are being made; ask anew in a moment",
                    payment_id=payment_id,
                )
            )
        await asyncio.sleep(_SOON)
    return None


async def mark_answered(database: Database, shop: Shop, movement_id: int) -> None:
    """Whoever asked is told of it now; if the database is away, or the merchant just being moved,
    an equal request stays a repeat, and moves nothing.
    """
    with suppress(*AWAY, Fenced):
        await _take(database, shop, movement_id)


async def _equal(database: Database, shop: Shop, payment_id: int, amount: Decimal | None) -> _Unanswered | None:
    """The oldest that nobody was told of and that gives back the same:
    this amount, or (None) all that was left.
    """
    rows = queries.unanswered(
        database,
        merchant_id=shop.merchant_id,
        live=shop.live,
        payment_id=payment_id,
        taken_for_the_same=TAKEN_FOR_THE_SAME,
    )
    for each in await records_of(_Unanswered, rows):
        if each.gives_all if amount is None else each.amount == amount:
            return each
    return None


async def _keep(database: Database) -> bool:
    """Wait until no failover forgets what was seen, which a write would wait for, too."""
    await make_durable(database, patience=PATIENCE)
    return True


async def _take(database: Database, shop: Shop, movement_id: int) -> bool:
    """Whether this call is the one that tells of it."""
    told = await queries.mark_answered(database, merchant_id=shop.merchant_id, live=shop.live, id=movement_id)
    return told is not None
