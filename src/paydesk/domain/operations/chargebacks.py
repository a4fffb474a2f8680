"""An operator's side of chargebacks: disputes that wait to be booked,
and what a chargeback in another currency is worth.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

from paydesk.adapters.acquirers.disputes import Dispute, DisputeStatus
from paydesk.core.errors import Conflict
from paydesk.core.wording import noted
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.domain.acquirers.leases import Unleased
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import settle_alarms
from paydesk.domain.chargebacks.booking import record_dispute
from paydesk.domain.chargebacks.for_api import Chargeback, find_chargeback, purchase_of, reference_of
from paydesk.domain.merchants.shop import Shop

queries = load_statements(__package__ or "", "chargebacks.sql")


@dataclass(frozen=True, slots=True)
class WaitingDispute:
    """A dispute that is not in the books, as it was last told, and why;
    times are UTC, `next_at` is its next try, None if it is given up.
    """

    acquirer: str
    told: Dispute
    reason: str
    first_at: datetime
    last_at: datetime
    next_at: datetime | None
    tries: int


async def list_waiting(database: Database, *, most: int) -> list[WaitingDispute]:
    """The disputes that wait, the oldest first."""
    return await records_of(WaitingDispute, queries.list_waiting(database, most=most))


async def reckon(database: Database, shop: Shop, chargeback_id: int, worth: Decimal, *, now: datetime) -> Chargeback:
    """Say what a chargeback in another currency is worth in its payment's;
    the difference is booked. Moves no money.

    `now` is real time. Raises: NotFound, Conflict if it is in the payment's own currency, or can't
    be booked so.
    """
    found = await find_chargeback(database, shop, chargeback_id)
    if found.disputed_currency == found.currency:
        raise Conflict(
            f"chargeback {chargeback_id} is in {found.currency}, as its payment is: there is nothing to reckon"
        )
    acquirer, reference = await reference_of(database, shop, chargeback_id)
    told = Dispute(
        reference,
        (await purchase_of(database, shop, found.payment_id)).key,
        found.disputed_amount,
        found.disputed_currency,
        found.reason,
        DisputeStatus(found.state),
        now,
        taken=_in_its_own(found, found.taken),
        returned=_in_its_own(found, found.returned),
    )
    within = Unleased(database).holding
    booked = await record_dispute(within, acquirer, replace(told, of_payment=worth), now=now, confirmed=True)
    if booked.waits is not None:
        raise Conflict(f"chargeback {chargeback_id} can't be booked so: {booked.waits.reason}")
    subject = f"chargeback {chargeback_id}"
    await settle_alarms(
        database, AlarmKind.dispute_reckoned, [subject], shop=shop, by=noted("an operator reckoned it"), now=now
    )
    return await find_chargeback(database, shop, chargeback_id)


def _in_its_own(found: Chargeback, amount: Decimal) -> Decimal:
    """A sum of the books in the chargeback's own currency."""
    return found.disputed_amount if amount == found.amount else amount * found.disputed_amount / found.amount
