"""The simulated bank's list of what was asked of it, for whoever compares it with their books."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Final

import msgspec

from paydesk.adapters.acquirers.instruments import Instrument
from paydesk.adapters.acquirers.interface import AcquirerRefused, Approved
from paydesk.adapters.acquirers.listing import ListedPurchase, ListedRefund, PurchasePage, PurchaseState, RefundPage
from paydesk.adapters.acquirers.simulator.holding import hold_until
from paydesk.adapters.acquirers.simulator.purchase_state import Standing, Status, standing_of
from paydesk.adapters.acquirers.simulator.record import Kind, Operation, Record
from paydesk.adapters.acquirers.simulator.remembering import key_of
from paydesk.core.wording import noted

PAGE: Final = 100
_ASKED: Final = (Kind.AUTHORIZE, Kind.CHARGE, Kind.CHALLENGE, Kind.PAGE)
_STATES: Final = {
    Status.CHALLENGED: PurchaseState.OPEN,
    Status.PENDING: PurchaseState.PENDING,
    Status.DECLINED: PurchaseState.DECLINED,
    Status.VOIDED: PurchaseState.ENDED,
    Status.BLOCKED: PurchaseState.ENDED,
}


def purchases_since(record: Record, since: datetime, after: str) -> PurchasePage:
    """A page of the purchases since a time; the cursor is a place in the record.

    Raises: AcquirerRefused.
    """
    lines = record.made_since(since, place_of(after), PAGE, *_ASKED)
    listed = tuple(_purchase(record, line) for line in lines if line.amount)
    return PurchasePage(listed, place_after(lines))


def refunds_since(record: Record, since: datetime, after: str) -> RefundPage:
    """A page of the refunds since a time. Raises: AcquirerRefused."""
    lines = record.made_since(since, place_of(after), PAGE, Kind.REFUND)
    return RefundPage(tuple(_refund(record, line) for line in lines), place_after(lines))


def place_of(after: str) -> int:
    """The place in the record that a cursor names. Raises: AcquirerRefused."""
    if after and not (after.isascii() and after.isdigit() and len(after) <= 18):
        raise AcquirerRefused(noted("the cursor is none of this bank"))
    return int(after or 0)


def place_after(lines: list[Operation]) -> str:
    """The cursor after some lines, empty if there are no more."""
    return str(lines[-1].seq) if len(lines) == PAGE else ""


def _purchase(record: Record, line: Operation) -> ListedPurchase:
    """A line of the record as the purchase that it began, as that stands now."""
    key = line.of_key or ""
    standing = standing_of(record.of_purchase(key))
    assert standing is not None, "it has a line"
    kept, finding = record.mark(key), standing.finding()
    return ListedPurchase(
        key=key_of(key),
        reference=standing.reference,
        at=line.at,
        amount=standing.amount,
        currency=standing.currency,
        state=_state(standing),
        captured=standing.captured,
        refunded=standing.refunded,
        mark=kept[1] if kept else None,
        network_reference=finding.network_reference if isinstance(finding, Approved) else "",
        last4=standing.last4,
        instrument=msgspec.json.decode(told, type=Instrument) if (told := record.instrument(key)) else None,
        hold_until=hold_until(record, standing),
    )


def _state(standing: Standing) -> PurchaseState:
    if standing.status is Status.APPROVED:
        return PurchaseState.CAPTURED if standing.captured else PurchaseState.AUTHORIZED
    return _STATES[standing.status]


def _refund(record: Record, line: Operation) -> ListedRefund:
    standing = standing_of(record.of_purchase(line.of_key or ""))
    kept = record.mark(line.of_key or "")
    has_failed = record.named(line.reference, Kind.REFUND_FAILED) is not None
    return ListedRefund(
        key=key_of(line.key or ""),
        reference=line.reference,
        of_reference=standing.reference if standing else "",
        at=line.at,
        amount=Decimal(line.amount),
        currency=line.currency,
        made=not has_failed,
        of_key=key_of(line.of_key or ""),
        number=record.number(line.reference),
        mark=kept[1] if kept else None,
    )
