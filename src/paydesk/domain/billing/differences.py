"""What was charged for a change of plan at once, and what became of a wish that comes again."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal

import msgspec

from paydesk.core.errors import Conflict
from paydesk.core.wording import worded
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any
from paydesk.database.statements import load_statements
from paydesk.domain.billing.charging_saved import NotCharged
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.subscriptions.changing import Changed
from paydesk.domain.subscriptions.ending import find_row
from paydesk.domain.subscriptions.prorating import Proration
from paydesk.domain.subscriptions.rows import subscription_of

queries = load_statements(__package__ or "", "differences.sql")


@dataclass(frozen=True, slots=True)
class Difference:
    """What was charged for a change at once, or (`is_open`) may have been: the bank has not told.

    Of a preview it has no payment. `amount` is 0 if nobody was asked, `taken_up` what counts of a
    charge that our database had forgotten; `again` if this wish was answered before.
    """

    amount: Decimal = Decimal(0)
    payment_id: int | None = None
    is_open: bool = False
    taken_up: Decimal = Decimal(0)
    again: bool = False


@dataclass(frozen=True, slots=True)
class ChangedAtOnce:
    """What came of the wish, and what of its charge."""

    changed: Changed
    difference: Difference = field(default_factory=Difference)


class KnownDifference(msgspec.Struct, frozen=True):
    """A difference that was begun, and what became of it."""

    subscription_id: int
    attempt_id: int
    state: str
    charged: Decimal
    package_version_id: int
    period_number: int
    began_at: datetime
    ends_at: datetime
    at: datetime
    old_price: Decimal
    new_price: Decimal
    given_back: Decimal
    amount: Decimal
    begins: bool
    payment_id: int
    decline_reason: str | None

    @property
    def proration(self) -> Proration:
        """What it put into the balance, if it is paid."""
        return msgspec.convert(self, Proration, from_attributes=True)


async def count_declined(database: Database, shop: Shop, subscription_id: int, *, since: datetime) -> int:
    """How many differences of a subscription were declined since a moment, by the shop's time."""
    named = {"merchant_id": shop.merchant_id, "live": shop.live, "subscription_id": subscription_id}
    return int(await queries.count_declined(database, **named, since=since) or 0)


async def became_of(database: Database, shop: Shop, subscription_id: int, request_key: str) -> str:
    """The state of a subscription's difference by its caller's key; empty if there is none."""
    known = await find_known(database, shop, request_key=request_key)
    return known.state if known is not None and known.subscription_id == subscription_id else ""


async def find_known(
    database: Database, shop: Shop, *, request_key: str | None = None, attempt_id: int | None = None
) -> KnownDifference | None:
    """The difference that was begun under a caller's key, or by an attempt."""
    asked = {"merchant_id": shop.merchant_id, "live": shop.live, "request_key": request_key, "attempt_id": attempt_id}
    return record_if_any(KnownDifference, await queries.find_difference(database, **asked))


async def answered(
    database: Database, shop: Shop, subscription_id: int, request_key: str | None
) -> ChangedAtOnce | None:
    """What became of a wish whose key was sent before, None if none was. Raises: as `answer_of`."""
    known = None if request_key is None else await find_known(database, shop, request_key=request_key)
    if known is None:
        return None
    done = await answer_of(database, shop, known, subscription_id)
    return replace(done, difference=replace(done.difference, again=True))


async def answer_of(database: Database, shop: Shop, known: KnownDifference, subscription_id: int) -> ChangedAtOnce:
    """What became of a difference that was begun before.

    Raises: Conflict if the key named another subscription then; NotCharged if it took nothing.
    """
    if known.subscription_id != subscription_id:
        raise Conflict("this Idempotency-Key came with another request before; use a new key for each new request")
    if known.state == "declined":
        raise NotCharged(
            worded(
                "the charge was declined (%(decline_reason)s): nothing was taken, and subscription "
                "%(subscription_id)s keeps its plan",
                decline_reason=known.decline_reason,
                subscription_id=subscription_id,
            )
        )
    kept = await unchanged(database, shop, subscription_id)
    if known.state == "open":
        return ChangedAtOnce(kept, Difference(known.charged, known.payment_id, is_open=True))
    changed = replace(kept, moved=True, proration=known.proration)
    return ChangedAtOnce(changed, Difference(known.charged, known.payment_id))


async def unchanged(database: Database, shop: Shop, subscription_id: int) -> Changed:
    """A subscription as it stands, which nothing has moved. Raises: NotFound."""
    return Changed(subscription_of(await find_row(database, shop, subscription_id)), moved=False)
