"""Refunds that fail at Stripe after they were made, read from its list of events.

A customer's bank may send a refund back up to 30 days after it succeeded: the refund becomes
`failed`, its amount is ours again. (Some methods' refunds are canceled by their customers instead.)
Stripe tells it as `refund.failed`, to accounts of older API versions as an update. It keeps events
for 30 days, the cursor is the newest one that was read.

One that was made in Stripe's own pages has no key of ours: whose it is, its payment says.

Source: docs.stripe.com/refunds, "Failed refunds"; docs.stripe.com/api/events/types.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from paydesk.adapters.acquirers.disputes import FailedRefund, FailedRefundPage
from paydesk.adapters.acquirers.stripe.amounts import main_units
from paydesk.adapters.acquirers.stripe.calls import Calls
from paydesk.adapters.acquirers.stripe.events import Event, EventPage, Events
from paydesk.adapters.acquirers.stripe.looking import Looking
from paydesk.adapters.acquirers.stripe.objects import KEY, Refund

_TYPES: Final = ["refund.failed", "refund.updated", "charge.refund.updated"]


class _Refunded(Refund, frozen=True):
    """A refund as it was when something happened to it."""

    currency: str = ""


class FailedRefunds:
    """Reads what happened to refunds after they were made."""

    def __init__(self, calls: Calls, looking: Looking) -> None:
        self._events: Final = Events(calls, _TYPES, EventPage[_Refunded])
        self._looking: Final = looking

    async def after(self, cursor: str) -> FailedRefundPage:
        """Our refunds that failed after a cursor; one may be told more than once. Moves no money.

        Raises: AcquirerRefused if the account's key may not read events, OutcomeUnknown.
        """
        while True:
            events = await self._events.since(cursor)
            if not events:
                return FailedRefundPage((), cursor)
            cursor = events[0].id
            found = [_failed(event) for event in reversed(events) if await self._is_ours(event.data.object)]
            if found:
                return FailedRefundPage(tuple(found), cursor)

    async def _is_ours(self, refund: _Refunded) -> bool:
        """Whether it is a refund that failed, of a purchase of ours. Raises: OutcomeUnknown."""
        if refund.counts:
            return False
        if KEY in refund.metadata:
            return True
        named = refund.payment_intent if isinstance(refund.payment_intent, str) else ""
        intent = await self._looking.intent(named)
        return intent is not None and KEY in intent.metadata


def _failed(event: Event[_Refunded]) -> FailedRefund:
    """An event as the refund that failed with it."""
    refund = event.data.object
    return FailedRefund(
        reference=refund.id,
        key=refund.listed_key,
        amount=main_units(refund.amount, refund.currency),
        currency=refund.currency.upper(),
        reason=refund.failure_reason or refund.status or "failed",
        at=datetime.fromtimestamp(event.created, UTC),
    )
