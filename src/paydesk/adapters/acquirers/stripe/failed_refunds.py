"""Refunds that fail at Stripe after they were made, read from its list of events.

A customer's bank may send a refund back up to 30 days after it succeeded: the refund becomes
`failed`, its amount is ours again. (Some methods' refunds are canceled by their customers instead.)
Stripe tells it as `refund.failed`, to accounts of older API versions as an update. It keeps events
for 30 days, the cursor is the newest one that was read.

Source: docs.stripe.com/refunds, "Failed refunds"; docs.stripe.com/api/events/types.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from paydesk.adapters.acquirers.disputes import FailedRefund, FailedRefundPage
from paydesk.adapters.acquirers.stripe.amounts import main_units
from paydesk.adapters.acquirers.stripe.calls import Calls
from paydesk.adapters.acquirers.stripe.events import Event, EventPage, Events
from paydesk.adapters.acquirers.stripe.objects import KEY, Refund

_TYPES: Final = ["refund.failed", "refund.updated", "charge.refund.updated"]


class _Refunded(Refund, frozen=True):
    """A refund as it was when something happened to it."""

    currency: str = ""


class FailedRefunds:
    """Reads what happened to refunds after they were made."""

    def __init__(self, calls: Calls) -> None:
        self._events: Final = Events(calls, _TYPES, EventPage[_Refunded])

    async def after(self, cursor: str) -> FailedRefundPage:
        """Our refunds that failed after a cursor; one may be told more than once. Moves no money.

        Raises: AcquirerRefused if the account's key may not read events, OutcomeUnknown.
        """
        while True:
            events = await self._events.since(cursor)
            if not events:
                return FailedRefundPage((), cursor)
            cursor = events[0].id
            found = tuple(failed for event in reversed(events) if (failed := _failed(event)) is not None)
            if found:
                return FailedRefundPage(found, cursor)


def _failed(event: Event[_Refunded]) -> FailedRefund | None:
    """An event as the refund of ours that failed with it, None if it is about anything else."""
    refund = event.data.object
    key = refund.metadata.get(KEY)
    if refund.counts or key is None:
        return None
    return FailedRefund(
        reference=refund.id,
        key=key,
        amount=main_units(refund.amount, refund.currency),
        currency=refund.currency.upper(),
        reason=refund.failure_reason or refund.status or "failed",
        at=datetime.fromtimestamp(event.created, UTC),
    )
