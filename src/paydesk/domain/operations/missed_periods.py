"""What a suspension or an outage kept from being charged:
how much it is, and an operator's wish that all of it be.

Nobody is charged for several periods at once: one is, and the calendar moves on (`lifecycle.paid`).
Moves no money.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from paydesk.core.errors import NotFound
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.accounts.audit import Action, Actor, record
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.rows import SubscriptionRow, subscription_of

queries = load_statements(__package__ or "", "missed_periods.sql")

_BATCH = 500


@dataclass(frozen=True, slots=True)
class Missed:
    """What is due in one currency: of so many subscriptions `once` is charged now,
    or `all_amount` for `periods`.
    """

    currency: str
    subscriptions: int
    once: Decimal
    periods: int
    all_amount: Decimal

    @property
    def skipped(self) -> int:
        """How many periods are not charged unless all are wanted."""
        return self.periods - self.subscriptions


async def missed_periods(database: Database, shop: Shop, *, now: datetime) -> list[Missed]:
    """What would be charged of what is due by now (the shop's time), by currency:
    one period each, or all of them.
    """
    found: dict[str, Missed] = {}
    after, is_complete = 0, False
    while not is_complete:
        rows = queries.due_now(
            database, merchant_id=shop.merchant_id, live=shop.live, now=now, after_id=after, most=_BATCH
        )
        batch = [subscription_of(row) for row in await records_of(SubscriptionRow, rows)]
        for one in batch:
            terms = one.package.terms
            before = found.get(terms.currency, Missed(terms.currency, 0, Decimal(0), 0, Decimal(0)))
            periods = _periods_due(one, now)
            found[terms.currency] = Missed(
                terms.currency,
                before.subscriptions + 1,
                before.once + terms.price,
                before.periods + periods,
                before.all_amount + periods * terms.price,
            )
        is_complete = len(batch) < _BATCH
        after = batch[-1].id if batch else after
    return sorted(found.values(), key=lambda missed: missed.currency)


def _periods_due(subscription: Subscription, now: datetime) -> int:
    """How many periods of a due subscription have begun without being paid for."""
    number = subscription.next_period + 1
    while (due := subscription.schedule.due(number)) is not None and due <= now:
        number += 1
    return number - subscription.next_period


async def charge_all_missed(database: Database, actor: Actor, merchant_id: int, *, now: datetime) -> None:
    """Have every period that fell due until now charged, each as its own payment,
    instead of one of each subscription.

    It holds for what has not been charged yet: choose before a suspension is lifted, or before
    workers run again. `now` is real time, UTC. Moves no money: the workers do.
    Raises: NotFound.
    """
    async with database.acquire() as connection, connection.transaction():
        await want_all_missed(connection, actor, merchant_id, now=now)


async def want_all_missed(connection: Connection, actor: Actor, merchant_id: int, *, now: datetime) -> None:
    """Do what `charge_all_missed` does, on the transaction that lifts a suspension. Moves no money.
    Raises: NotFound.
    """
    if await queries.charge_all(connection, merchant_id=merchant_id, now=now) is None:
        raise NotFound(f"there is no merchant {merchant_id}")
    await record(
        connection,
        actor,
        Action.missed_periods_wanted,
        now=now,
        merchant_id=merchant_id,
        subject=f"merchant {merchant_id}",
        details={"until": f"{now:%Y-%m-%d %H:%M:%SZ}"},
    )
