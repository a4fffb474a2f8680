"""Refunds that fail at Mollie after they were made, or are canceled in its dashboard before they go
out, read from its list of refunds: ours, and those of our payments that were made in the dashboard.

One may be queued for as long as the account's balance does not cover it, and come to nothing then:
once a day the list is read a year back.

Source: docs.mollie.com/docs/refunds, "Refund statuses"; docs.mollie.com/reference/list-all-refunds.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

from paydesk.adapters.acquirers.disputes import FailedRefund, FailedRefundPage
from paydesk.adapters.acquirers.mollie.calls import Calls
from paydesk.adapters.acquirers.mollie.looking import place
from paydesk.adapters.acquirers.mollie.objects import Listed, Refund, moment
from paydesk.adapters.acquirers.mollie.scanning import is_fresh, read_before

_PAUSE: Final = timedelta(minutes=30)
_FAR: Final = timedelta(days=60)
"""A refund that was sent longer ago does not fail any more."""
_FARTHEST: Final = timedelta(days=366)
"""No refund waits for longer than that until it is sent."""


class FailedRefunds:
    """Reads what became of refunds after they were made."""

    def __init__(self, calls: Calls, now: Callable[[], datetime]) -> None:
        self._calls: Final = calls
        self._now: Final = now

    async def after(self, cursor: str) -> FailedRefundPage:
        """Our refunds of the last weeks that came to nothing, once a day of the last year.
        Moves no money.

        One is told more than once.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        now, read_at = self._now(), read_before(cursor)
        if is_fresh(read_at, now, _PAUSE):
            return FailedRefundPage((), cursor)
        is_first_of_day = read_at is None or read_at.astimezone(UTC).date() != now.astimezone(UTC).date()
        since = now - (_FARTHEST if is_first_of_day else _FAR)
        found = [_failed(one, now) for one in await self._came_to_nothing(since)]
        return FailedRefundPage(tuple(reversed(found)), now.isoformat())

    async def _came_to_nothing(self, since: datetime) -> list[Refund]:
        """Our refunds since a time that came to nothing, the newest first, but those to undo a
        payment after which another was made. A year's whole list may be long.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        undone: set[str] = set()
        found: list[Refund] = []
        after = ""
        while True:
            ask = partial(self._calls.sdk.refunds.all_async, embed="payment", **place(after))
            part = await self._calls.ask(ask, Listed)
            for one in part.embedded.refunds:
                if one.counts:
                    undone.add(one.undoes)
                elif moment(one.created_at) >= since and _is_ours(one) and not (one.undoes and one.undoes in undone):
                    found.append(one)
            if not part.next or moment(part.embedded.refunds[-1].created_at) < since:
                return found
            after = part.next


def _is_ours(refund: Refund) -> bool:
    """Whether it is a refund of ours, or of a payment of ours."""
    payment = refund.embedded.payment if refund.embedded else None
    return bool(refund.key or (payment and payment.key))


def _failed(refund: Refund, now: datetime) -> FailedRefund:
    return FailedRefund(
        reference=refund.id,
        key=refund.listed_key,
        amount=refund.amount.amount,
        currency=refund.amount.currency,
        reason=refund.status,
        at=now,
    )
