"""Mollie's own list of payments and refunds since a time, the newest first;
the cursor is the name with which the next part begins.

Source: docs.mollie.com/reference/list-payments, /list-all-refunds, /pagination.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Final

from paydesk.adapters.acquirers.listing import ListedPurchase, ListedRefund, PurchasePage, PurchaseState, RefundPage
from paydesk.adapters.acquirers.mollie.calls import Calls
from paydesk.adapters.acquirers.mollie.looking import place
from paydesk.adapters.acquirers.mollie.objects import Listed, Payment, Refund, moment
from paydesk.adapters.acquirers.mollie.pages import instrument_of

_STATES: Final = {
    "authorized": PurchaseState.AUTHORIZED,
    "paid": PurchaseState.CAPTURED,
    "failed": PurchaseState.DECLINED,
    "canceled": PurchaseState.ENDED,
    "expired": PurchaseState.ENDED,
}


class Listing:
    """Reads Mollie's lists part by part, and ends with what is older than was asked for."""

    def __init__(self, calls: Calls) -> None:
        self._calls: Final = calls

    async def purchases(self, since: datetime, after: str) -> PurchasePage:
        """A page of payments. Moves no money. Raises: AcquirerRefused, OutcomeUnknown."""
        part = await self._calls.ask(partial(self._calls.sdk.payments.list_async, **place(after)), Listed)
        found = [_purchase(payment) for payment in part.embedded.payments]
        young = [one for one in found if one.at >= since]
        # What was only kept is no purchase.
        return PurchasePage(tuple(one for one in young if one.amount), part.next if len(young) == len(found) else "")

    async def refunds(self, since: datetime, after: str) -> RefundPage:
        """A page of refunds. Moves no money. Raises: AcquirerRefused, OutcomeUnknown."""
        # What was given back in Mollie's dashboard has no key of its own; its payment has one.
        ask = partial(self._calls.sdk.refunds.all_async, embed="payment", **place(after))
        part = await self._calls.ask(ask, Listed)
        found = [_refund(refund) for refund in part.embedded.refunds]
        young = tuple(one for one in found if one.at >= since)
        return RefundPage(young, part.next if len(young) == len(found) else "")


def _purchase(payment: Payment) -> ListedPurchase:
    instrument = instrument_of(payment)
    return ListedPurchase(
        key=payment.key,
        reference=payment.id,
        at=payment.at,
        amount=payment.amount.amount,
        currency=payment.amount.currency,
        state=PurchaseState.AUTHORIZED if payment.is_held else _STATES.get(payment.status, PurchaseState.OPEN),
        captured=payment.captured,
        refunded=payment.refunded,
        mark=payment.mark,
        last4=instrument.last4,
        instrument=instrument if payment.status == "paid" or payment.is_held else None,
        hold_until=payment.hold_until,
    )


def _refund(refund: Refund) -> ListedRefund:
    payment = refund.embedded.payment if refund.embedded else None
    return ListedRefund(
        key=refund.listed_key,
        reference=refund.id,
        of_reference=refund.payment_id,
        at=moment(refund.created_at),
        amount=refund.amount.amount,
        currency=refund.amount.currency,
        made=refund.counts,
        of_key=payment.key if payment else "",
        number=refund.number,
        mark=payment.mark if payment else None,
    )
