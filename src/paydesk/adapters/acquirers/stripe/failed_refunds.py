"""Refunds that fail at Stripe after they were made, read from its list of events.

A customer's bank may send a refund back up to 30 days after it succeeded: the refund becomes `failed`, its amount is
ours again. (Some methods' refunds are canceled by their customers instead.) Stripe tells it as `refund.failed`, to
accounts of older API versions as an update. It keeps events for 30 days, the cursor is the newest one that was read.

Source: docs.stripe.com/refunds, "Failed refunds"; docs.stripe.com/api/events/types.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from paydesk.adapters.acquirers.interface import AcquirerRefused, FailedRefund, FailedRefundPage
from paydesk.adapters.acquirers.stripe.amounts import main_units
from paydesk.adapters.acquirers.stripe.calls import Calls
from paydesk.adapters.acquirers.stripe.objects import KEY, Refund

_TYPES: Final = ["refund.failed", "refund.updated", "charge.refund.updated"]
_PAGE: Final = 100


class _Refunded(Refund, frozen=True):
    """A refund as it was when something happened to it."""

    currency: str = ""


class _Data(msgspec.Struct, frozen=True):
    """What an event is about."""

    object: _Refunded


class _Event(msgspec.Struct, frozen=True):
    """Something that happened, at a time in Unix seconds."""

    id: str
    created: int
    data: _Data


class _EventList(msgspec.Struct, frozen=True):
    """A page of events, the newest first."""

    data: list[_Event]
    has_more: bool = False


class FailedRefunds:
    """Reads what happened to refunds after they were made."""

    def __init__(self, calls: Calls) -> None:
        self._calls: Final = calls

    async def after(self, cursor: str) -> FailedRefundPage:
        """Our refunds that failed after a cursor; one may be told more than once. Moves no money.

        Raises: AcquirerRefused if the account's key may not read events, OutcomeUnknown.
        """
        while True:
            events = await self._since(cursor)
            if not events:
                return FailedRefundPage((), cursor)
            cursor = events[0].id
            found = tuple(failed for event in reversed(events) if (failed := _failed(event)) is not None)
            if found:
                return FailedRefundPage(found, cursor)

    async def _since(self, cursor: str) -> list[_Event]:
        """The events just after a cursor, the newest first; all that are kept if it is none that Stripe knows."""
        if cursor:
            try:
                return (await self._page({"ending_before": cursor})).data
            except AcquirerRefused:
                pass  # A cursor of more than 30 days ago: Stripe has forgotten it.
        found: list[_Event] = []
        older: dict[str, Any] = {}
        while True:
            page = await self._page(older)
            found += page.data
            if not page.has_more or not page.data:
                return found
            older = {"starting_after": page.data[-1].id}

    async def _page(self, place: dict[str, Any]) -> _EventList:
        """One page of events. Raises: AcquirerRefused, OutcomeUnknown."""
        asked = {"types": _TYPES, "limit": _PAGE, **place}
        return await self._calls.ask(self._calls.v1.events.list_async(asked), _EventList)


def _failed(event: _Event) -> FailedRefund | None:
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
