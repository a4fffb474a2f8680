"""Charges for another plan whose change this database has forgotten:
an operator is told of them.
"""

from __future__ import annotations

from paydesk.adapters.acquirers.listing import ListedPurchase
from paydesk.adapters.acquirers.marks import PurchaseKind
from paydesk.core.clock import utc_now
from paydesk.core.money import written
from paydesk.core.wording import noted
from paydesk.database.statements import Connection
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms
from paydesk.domain.merchants.shop import Shop


async def name_forgotten_plan(connection: Connection, shop: Shop, listed: ListedPurchase, payment_id: int) -> None:
    """Raise an alarm for an adopted purchase that was for another plan of a subscription.
    Moves no money.

    The subscription itself is left as it is: to what it was to change nobody knows any more, and
    whoever asks for that again is not charged once more (`billing/charging_differences.py`).
    """
    mark = listed.mark
    if mark is None or mark.kind is not PurchaseKind.ORDER or not mark.subscription_id or mark.terms:
        return
    why = noted(
        "%(amount)s %(currency)s was charged for another plan of subscription %(subscription_id)s, order %(order)s, "
        "and the change was forgotten",
        amount=written(listed.amount, listed.currency),
        currency=listed.currency,
        subscription_id=mark.subscription_id,
        order=mark.order,
    )
    details = {"subscription": mark.subscription_id, "order": mark.order}
    alarm = Alarm(AlarmKind.plan_forgotten, f"payment {payment_id}", why, shop, details)
    await raise_alarms(connection, [alarm], now=utc_now())
