"""Refunds that fail at the simulated bank after they were made:
the customer's bank did not take the money.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Final

from paydesk.adapters.acquirers.disputes import FailedRefund, FailedRefundPage
from paydesk.adapters.acquirers.interface import AcquirerRefused
from paydesk.adapters.acquirers.simulator.record import Kind, Operation, Record
from paydesk.core.wording import noted

_PAGE: Final = 100


def fail_refund(record: Record, reference: str, reason: str, *, at: datetime) -> None:
    """Take a refund's money back from its way, once.
    Moves money (inside a transaction of the caller).

    Raises: AcquirerRefused if there is no such refund.
    """
    made = record.named(reference, Kind.REFUND)
    if made is None:
        raise AcquirerRefused(noted("there is no refund of this reference"))
    if record.named(reference, Kind.REFUND_FAILED) is None:
        record.write(replace(made, at=at, key=None, kind=Kind.REFUND_FAILED, result=reason))


def why_failed(record: Record, made: Operation) -> str:
    """Why a refund that was made counts no more, empty if it does."""
    failed = record.named(made.reference, Kind.REFUND_FAILED) if made.kind is Kind.REFUND else None
    return (
        noted("the refund %(reference)s failed: %(reason)s", reference=made.reference, reason=failed.result)
        if failed is not None
        else ""
    )


def failed_after(record: Record, after: str) -> FailedRefundPage:
    """A page of refunds that failed after a cursor, which is a place in the record.

    Raises: AcquirerRefused.
    """
    if after and not (after.isascii() and after.isdigit() and len(after) <= 18):
        raise AcquirerRefused(noted("the cursor is none of this bank"))
    lines = record.failed_refunds(int(after or 0), _PAGE)
    return FailedRefundPage(tuple(_failed(record, line) for line in lines), str(lines[-1].seq) if lines else after)


def _failed(record: Record, line: Operation) -> FailedRefund:
    """A line of the record as the refund that failed."""
    made = record.named(line.reference, Kind.REFUND)
    assert made is not None
    assert made.key is not None
    return FailedRefund(line.reference, made.key, line.amount, line.currency, line.result, line.at)
