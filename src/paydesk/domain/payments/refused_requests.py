"""Purchases that an acquirer refused as requests: no bank decided, so a person has to look why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from paydesk.adapters.acquirers.interface import Acquirer, AcquirerRefused, Declined, DeclineReason, KeyUsed, Outcome
from paydesk.adapters.acquirers.purchases import Purchase
from paydesk.core.clock import utc_now
from paydesk.core.wording import noted
from paydesk.database.pool import Database
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms
from paydesk.domain.merchants.shop import Shop


@dataclass(frozen=True, slots=True)
class RefusedRequest:
    """What an acquirer would not take, for its own `reason`;
    `what` names our side of it, such as `attempt 12`.
    """

    shop: Shop
    acquirer: str
    what: str
    reason: str


async def authorize(database: Database, acquirer: Acquirer, purchase: Purchase, *, shop: Shop, what: str) -> Outcome:
    """Ask for a purchase whose customer waits; a request that is refused as such is a decline.
    Moves money.

    Raises: OutcomeUnknown; KeyUsed for a key that was used before: what it came to is to be
        looked up.
    """
    try:
        return await acquirer.authorize(purchase)
    except KeyUsed:
        raise
    except AcquirerRefused as error:
        await report_refused(database, [RefusedRequest(shop, acquirer.name, what, str(error))], now=utc_now())
        return Declined(DeclineReason.REQUEST_REFUSED)


async def report_refused(database: Database, refused: Sequence[RefusedRequest], *, now: datetime) -> None:
    """Put refused requests into the operator's list, one line per merchant and acquirer;
    now is real. Moves no money.

    A wrong secret key refuses everything: a line for each attempt would bury all else.
    """
    alarms = [
        Alarm(
            AlarmKind.request_refused,
            noted("requests to %(acquirer)s", acquirer=one.acquirer),
            f"{one.what}: {one.reason}",
            one.shop,
            {"acquirer": one.acquirer, "what": one.what},
        )
        for one in refused
    ]
    await raise_alarms(database, alarms, now=now)
