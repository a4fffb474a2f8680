"""Disputes at Stripe, read from its list of events, and the merchant's side of them.

The cursor is the newest event that was read. Stripe keeps events for 30 days: a reading that pauses for longer starts
from what is kept, and its reader sees some disputes again.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from paydesk.adapters.acquirers.interface import AcquirerRefused, Dispute, DisputePage, DisputeStatus
from paydesk.adapters.acquirers.stripe.amounts import main_units
from paydesk.adapters.acquirers.stripe.calls import Calls, KeyTaken, Rejected
from paydesk.adapters.acquirers.stripe.looking import Looking
from paydesk.adapters.acquirers.stripe.objects import KEY, Named

_EVENTS: Final = ["charge.dispute.created", "charge.dispute.funds_withdrawn", "charge.dispute.closed"]
_STATUS: Final = {
    "needs_response": DisputeStatus.OPEN,
    "under_review": DisputeStatus.OPEN,
    "won": DisputeStatus.WON,
    "lost": DisputeStatus.LOST,
}
"""Others are warnings and inquiries, which take no money."""
_PAGE: Final = 100


class _Disputed(msgspec.Struct, frozen=True):
    """A dispute as it was when something happened to it."""

    id: str
    amount: int
    currency: str
    reason: str
    status: str
    payment_intent: str | None = None


class _Data(msgspec.Struct, frozen=True):
    """What an event is about."""

    object: _Disputed


class _Event(msgspec.Struct, frozen=True):
    """Something that happened, at a time in Unix seconds."""

    id: str
    created: int
    data: _Data


class _EventList(msgspec.Struct, frozen=True):
    """A page of events, the newest first."""

    data: list[_Event]
    has_more: bool = False


class Disputes:
    """Reads disputes and answers them."""

    def __init__(self, calls: Calls, looking: Looking) -> None:
        self._calls: Final = calls
        self._looking: Final = looking

    async def after(self, cursor: str) -> DisputePage:
        """What happened to disputes of our payments after a cursor. Moves no money.

        Raises: AcquirerRefused if the account's key may not read events, OutcomeUnknown.
        """
        while True:
            events = await self._since(cursor) if cursor else await self._all()
            if not events:
                return DisputePage((), cursor)
            cursor = events[0].id
            found = [await self._dispute(event) for event in reversed(events)]
            disputes = tuple(dispute for dispute in found if dispute is not None)
            if disputes:
                return DisputePage(disputes, cursor)

    async def submit_evidence(self, reference: str, text: str) -> None:
        """Hand the merchant's side in, which Stripe takes once only. Moves no money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        if not reference.replace("_", "").isalnum():
            raise AcquirerRefused("there is no dispute of this reference")
        asked = {"evidence": {"uncategorized_text": text}, "submit": True}
        try:
            await self._calls.ask(self._calls.v1.disputes.update_async(reference, asked), Named)
        except (KeyTaken, Rejected):
            raise AcquirerRefused("Stripe did not take the evidence") from None

    async def _since(self, cursor: str) -> list[_Event]:
        """The events just after a cursor, the newest first; all that are kept if it is too old to be known."""
        asked = {"types": _EVENTS, "limit": _PAGE, "ending_before": cursor}
        try:
            return (await self._calls.ask(self._calls.v1.events.list_async(asked), _EventList)).data
        except AcquirerRefused:
            return await self._all()

    async def _all(self) -> list[_Event]:
        """All events that Stripe keeps, the newest first."""
        found: list[_Event] = []
        asked: dict[str, Any] = {"types": _EVENTS, "limit": _PAGE}
        while True:
            page = await self._calls.ask(self._calls.v1.events.list_async(asked), _EventList)
            found += page.data
            if not page.has_more or not page.data:
                return found
            asked["starting_after"] = page.data[-1].id

    async def _dispute(self, event: _Event) -> Dispute | None:
        """An event as the dispute it is about, None if no money moved or the payment is not ours."""
        told = event.data.object
        status = _STATUS.get(told.status)
        if status is None or told.payment_intent is None:
            return None
        intent = await self._looking.intent(told.payment_intent)
        if intent is None or KEY not in intent.metadata:
            return None
        return Dispute(
            reference=told.id,
            of_key=intent.metadata[KEY],
            amount=main_units(told.amount, told.currency),
            currency=told.currency.upper(),
            reason=told.reason,
            status=status,
            at=datetime.fromtimestamp(event.created, UTC),
        )
