"""What a merchant has with Paydesk: pending, available and reserved money,
and the statement that explains it.

A balance is a sum of ledger entries; of old live ones the sums are kept (closing.py). Moves
no money.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum

from paydesk.core.errors import Unavailable
from paydesk.core.paging import LATEST, Page, Place
from paydesk.core.wording import worded
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.domain.merchants.shop import Shop

queries = load_statements(__package__ or "", "balances.sql")

_BATCH = 1000
_LOOKS, _BETWEEN_LOOKS = 400, 0.05
"""How often, and after how many seconds, it is looked whether a period is over:
longer than a posting may take."""


class PostingKind(StrEnum):
    """What a posting in the ledger was for."""

    CAPTURE = "capture"
    SETTLEMENT = "settlement"
    """A payment's net became available."""
    RESERVE_RELEASE = "reserve_release"
    REFUND = "refund"
    REFUND_FAILURE = "refund_failure"
    """A refund came back: the customer's bank did not take it."""
    CHARGEBACK = "chargeback"
    CHARGEBACK_FEE = "chargeback_fee"
    CHARGEBACK_REVERSAL = "chargeback_reversal"
    """A chargeback was won: the money came back."""
    PAYOUT = "payout"


@dataclass(frozen=True, slots=True)
class Balance:
    """What is owed to a merchant in one currency; each may be negative, reserve excepted."""

    currency: str
    pending: Decimal
    available: Decimal
    reserve: Decimal


@dataclass(frozen=True, slots=True)
class Release:
    """How much of the reserve is released on a day of the merchant's calendar."""

    day: date
    currency: str
    amount: Decimal


@dataclass(frozen=True, slots=True)
class Posting:
    """One line of the statement: `gross + fees == pending + available + reserve`,
    all changes seen by the merchant.

    `gross` came from or went to customers and the merchant's bank; `at` is UTC.
    """

    id: int
    at: datetime
    kind: PostingKind
    payment_id: int | None
    payout_id: int | None
    currency: str
    gross: Decimal
    fees: Decimal
    pending: Decimal
    available: Decimal
    reserve: Decimal


@dataclass(frozen=True, slots=True)
class Named:
    """What a line of the statement is about: an order and who paid it, or a transfer."""

    payment_id: int | None
    payout_id: int | None
    reference: str
    customer: str


async def balances(database: Database, shop: Shop) -> list[Balance]:
    """The shop's balances by currency, of all that is written."""
    rows = queries.balances(database, merchant_id=shop.merchant_id, live=shop.live)
    return await records_of(Balance, rows)


async def reserve_calendar(database: Database, shop: Shop) -> list[Release]:
    """When the shop's reserve is released, day by day."""
    rows = queries.reserve_calendar(database, merchant_id=shop.merchant_id, live=shop.live)
    return await records_of(Release, rows)


async def list_postings(database: Database, shop: Shop, page: Page) -> list[Posting]:
    """A page of the shop's statement, newest first; of a period that is over all of it.

    Raises: Unavailable if something is being posted into that period for too long.
    """
    if page.until < LATEST:
        await _over(database, page.until)
    rows = queries.postings(database, merchant_id=shop.merchant_id, live=shop.live, **page.parameters())
    return await records_of(Posting, rows)


async def names_on_lines(
    database: Database, shop: Shop, postings: Sequence[Posting]
) -> dict[tuple[int | None, int | None], Named]:
    """What lines of the shop's statement are about, by payment or payout."""
    rows = queries.names_on_lines(
        database,
        merchant_id=shop.merchant_id,
        live=shop.live,
        payment_ids=sorted({one.payment_id for one in postings if one.payment_id is not None}),
        payout_ids=sorted({one.payout_id for one in postings if one.payout_id is not None}),
    )
    return {(one.payment_id, one.payout_id): one for one in await records_of(Named, rows)}


async def payouts_wait_until(database: Database, merchant_id: int, *, now: datetime) -> datetime | None:
    """Until when payouts to the merchant's new bank account wait; None if they don't."""
    until: datetime | None = await queries.payouts_wait_until(database, merchant_id=merchant_id)
    return until if until is not None and until > now else None


async def count_postings(database: Database, shop: Shop, *, since: datetime, until: datetime) -> int:
    """How many postings a period has: the length of the way for a progress bar."""
    return int(
        await queries.count_postings(database, merchant_id=shop.merchant_id, live=shop.live, since=since, until=until)
    )


async def statement(database: Database, shop: Shop, *, since: datetime, until: datetime) -> AsyncIterator[Posting]:
    """All postings of a period, oldest first, read page by page:
    a slow reader holds no connection meanwhile.

    A period that is over never changes: what is just being posted into it is waited for. Of one
    that is not, what is posted after the reading began is left out.

    Raises: Unavailable if that takes too long.
    """
    await _over(database, until)
    side = {"merchant_id": shop.merchant_id, "live": shop.live}
    period = {"since": since, "until": until, "newest_id": await queries.newest_posting(database)}
    place: Place | None = Place(since, 0)
    while place is not None:
        after = {"after_at": place.at, "after_id": place.id, "most": _BATCH}
        found = await records_of(Posting, queries.statement(database, **side, **period, **after))
        for one in found:
            yield one
        place = Place(found[-1].at, found[-1].id) if len(found) == _BATCH else None


async def _over(database: Database, until: datetime) -> None:
    """Wait for what is still being posted before `until`, if that is over;
    a period that is not may grow anyway.

    Raises: Unavailable.
    """
    for _ in range(_LOOKS):
        if not await queries.still_posting(database, until=until):
            return
        await asyncio.sleep(_BETWEEN_LOOKS)
    raise Unavailable(
        worded("a payment of this period is just being recorded; ask for the statement again in a minute")
    )
