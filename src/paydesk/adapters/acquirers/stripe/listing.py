"""Stripe's own list of purchases and refunds since a time, which does not lag behind
as its search may.

Source: docs.stripe.com/api/payment_intents/list, docs.stripe.com/api/refunds/list,
    docs.stripe.com/api/pagination.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final

from paydesk.adapters.acquirers.instruments import Instrument, InstrumentKind
from paydesk.adapters.acquirers.listing import ListedPurchase, ListedRefund, PurchasePage, PurchaseState, RefundPage
from paydesk.adapters.acquirers.stripe.amounts import main_units
from paydesk.adapters.acquirers.stripe.calls import Calls
from paydesk.adapters.acquirers.stripe.objects import (
    KEY,
    Charge,
    Intent,
    IntentList,
    Refund,
    RefundList,
    instrument_of,
    mark_of,
    released_by,
)

_PAGE: Final = 100
_STATES: Final = {
    "succeeded": PurchaseState.CAPTURED,
    "requires_capture": PurchaseState.AUTHORIZED,
    "canceled": PurchaseState.ENDED,
}


class Listing:
    """Reads pages of Stripe's lists, the newest first;
    the cursor is the last object of the page before.
    """

    def __init__(self, calls: Calls) -> None:
        self._calls: Final = calls

    async def purchases(self, since: datetime, after: str) -> PurchasePage:
        """A page of PaymentIntents. Moves no money. Raises: AcquirerRefused, OutcomeUnknown."""
        asked = _asked(since, after) | {"expand": ["data.latest_charge", "data.latest_charge.refunds"]}
        page = await self._calls.ask(self._calls.v1.payment_intents.list_async(asked), IntentList)
        return PurchasePage(tuple(map(_purchase, page.data)), page.data[-1].id if page.has_more and page.data else "")

    async def refunds(self, since: datetime, after: str) -> RefundPage:
        """A page of refunds. Moves no money. Raises: AcquirerRefused, OutcomeUnknown."""
        # What was given back in Stripe's own pages has no key of its own; its purchase has one.
        asked = _asked(since, after) | {"expand": ["data.payment_intent"]}
        page = await self._calls.ask(self._calls.v1.refunds.list_async(asked), RefundList)
        given_back = tuple(_refund(refund) for refund in page.data if not _only_lets_go(refund))
        return RefundPage(given_back, page.data[-1].id if page.has_more and page.data else "")


def _asked(since: datetime, after: str) -> dict[str, object]:
    place = {"starting_after": after} if after else {}
    return {"limit": _PAGE, "created": {"gte": int(since.timestamp())}, **place}


def _purchase(intent: Intent) -> ListedPurchase:
    """A PaymentIntent as it stands; one that only used a key up has no key of ours,
    as other software's.
    """
    currency = intent.currency.upper()
    charge = intent.latest_charge
    refunded = _given_back(intent, charge) if isinstance(charge, Charge) else 0
    return ListedPurchase(
        key=intent.metadata.get(KEY, ""),
        reference=intent.id,
        at=datetime.fromtimestamp(intent.created, UTC),
        amount=main_units(intent.amount, currency),
        currency=currency,
        state=_state(intent),
        captured=main_units(intent.amount_received, currency),
        refunded=main_units(refunded, currency) if intent.status == "succeeded" else Decimal(0),
        mark=mark_of(intent.metadata),
        network_reference=intent.network_reference,
        last4=charge.last4 if isinstance(charge, Charge) else "",
        instrument=_paid_with(intent) if isinstance(charge, Charge) else None,
        hold_until=intent.hold_until,
    )


def _given_back(intent: Intent, charge: Charge) -> int:
    """What was given back of what was received, in minor units: what a capture in part let go of
    was never taken, though it may be called refunded.
    """
    released = released_by(intent, charge.refunds.data) if charge.refunds is not None else 0
    if charge.amount_refunded > intent.amount_received:
        # More than was received can't be given back, whatever is told of its refunds.
        released = intent.amount - intent.amount_received
    return max(charge.amount_refunded - released, 0)


def _paid_with(intent: Intent) -> Instrument:
    """What was paid with; a card is charged again by the purchase's `network_reference`."""
    told = instrument_of(intent)
    return replace(told, reference="") if told.kind is InstrumentKind.CARD else told


def _state(intent: Intent) -> PurchaseState:
    if intent.status == "requires_payment_method" and intent.last_payment_error is not None:
        return PurchaseState.DECLINED
    if intent.waits_for is not None:
        return PurchaseState.PENDING
    return _STATES.get(intent.status, PurchaseState.OPEN)


def _only_lets_go(refund: Refund) -> bool:
    """Whether nothing was given back by it: what a canceled payment held is "automatically
    refunded", and was never taken. Source: docs.stripe.com/api/payment_intents/cancel.
    """
    intent = refund.payment_intent
    if not isinstance(intent, Intent) or intent.amount_received:
        return False
    return intent.status in {"canceled", "requires_capture"}


def _refund(refund: Refund) -> ListedRefund:
    """A refund as it stands.

    Stripe holds one as pending until the balance covers it, or its bank has taken it, which takes
    days. Of ours somebody asks until then. One that was made in Stripe's own pages counts as made
    at once: its money is promised to the customer, and it is told if it fails (`failed_refunds`).
    """
    currency, intent = refund.currency.upper(), refund.payment_intent
    return ListedRefund(
        key=refund.listed_key,
        reference=refund.id,
        of_reference=(intent.id if isinstance(intent, Intent) else intent) or "",
        at=datetime.fromtimestamp(refund.created, UTC),
        amount=main_units(refund.amount, currency),
        currency=currency,
        made=refund.counts and (refund.is_final or not refund.listed_key),
        of_key=intent.metadata.get(KEY, "") if isinstance(intent, Intent) else "",
        number=refund.number,
        mark=mark_of(intent.metadata) if isinstance(intent, Intent) else None,
    )
