"""Balances of subscriptions: what was paid for the period that runs, and what a change of plan
within it comes to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

import msgspec

from paydesk.core.errors import Busy, Conflict
from paydesk.core.wording import worded
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any
from paydesk.database.statements import load_statements
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.prorating import Proration, counted_back, difference

queries = load_statements(__package__ or "", "balances.sql")


class ReadApart(Busy):
    """A subscription has changed between two looks at it: whoever looks again sees it whole."""


@dataclass(frozen=True, slots=True)
class PaidPeriod:
    """What was paid for the period that runs, as its subscription of a revision finds it.

    `price` is what it cost before its plan changed, `given_back` what was refunded or charged back
    of that in all, `given_back_since` whether any was of a difference that was charged within it.
    """

    revision: int
    balance: Decimal
    price: Decimal
    given_back: Decimal
    given_back_since: bool
    earlier: str

    @property
    def prorations(self) -> list[Proration]:
        """The changes in it that were prorated, oldest first."""
        return msgspec.json.decode(self.earlier, type=list[Proration])


async def find_balance(database: Database, shop: Shop, subscription_id: int) -> Decimal:
    """What a subscription's next renewals charge besides their prices; a credit is less than 0.
    Moves no money.
    """
    found = await queries.find_balance(database, merchant_id=shop.merchant_id, live=shop.live, id=subscription_id)
    return Decimal(0) if found is None else found


async def find_paid_period(database: Database, shop: Shop, subscription_id: int) -> PaidPeriod:
    """What was paid for the period that runs. Moves no money. Raises: Conflict if nothing was."""
    asked = queries.period_paid(database, merchant_id=shop.merchant_id, live=shop.live, id=subscription_id)
    found = record_if_any(PaidPeriod, await asked)
    if found is None:
        raise Conflict(
            worded(
                "no period of subscription %(subscription_id)s that runs was paid, so nothing can be prorated",
                subscription_id=subscription_id,
            )
        )
    return found


def prorated(current: Subscription, paid: PaidPeriod, price: Decimal, *, now: datetime) -> Proration:
    """What another price from now on comes to, for what is left of the period that is paid.

    Raises: ReadApart if the subscription is not the one any more whose payment was read; Conflict
        if a difference that was charged within the period was given back.
    """
    latest = replace(_until_now(current, paid, now=now), new_price=price)
    return replace(latest, amount=difference(paid.prorations, latest))


def given_up(current: Subscription, paid: PaidPeriod, *, credited: bool, now: datetime) -> Proration:
    """What comes of the period that is paid, or the trial, if another one begins now: its unused
    share is a credit, or nothing.

    Raises: as `prorated`.
    """
    latest = _until_now(current, paid, now=now)
    latest = replace(latest, new_price=Decimal(0) if credited else latest.kept, begins=True)
    return replace(latest, amount=difference(paid.prorations, latest))


def _until_now(current: Subscription, paid: PaidPeriod, *, now: datetime) -> Proration:
    """The period that runs as it was paid, without what comes now. Raises: Conflict; ReadApart."""
    if paid.given_back_since:
        raise Conflict(
            worded(
                "of what an earlier change of subscription %(id)s charged in this period some was given "
                "back, so its rest has no price: change it with the period, or without proration",
                id=current.id,
            )
        )
    if paid.revision != current.revision:
        raise ReadApart(worded("subscription %(id)s has changed just now; try again", id=current.id))
    earlier = paid.prorations
    price = earlier[-1].new_price if earlier else paid.price
    return Proration(
        period_number=current.next_period - 1,
        began_at=current.period_began_at,
        ends_at=current.paid_until,
        at=now,
        old_price=price,
        new_price=price,
        given_back=paid.given_back - counted_back(earlier),
    )
