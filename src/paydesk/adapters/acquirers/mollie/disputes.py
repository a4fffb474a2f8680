"""Chargebacks at Mollie, read from its list: each is taken when it is made, and given again at its
`reversedAt`. A payment may have several.

Mollie does not say that a chargeback is lost: it is open until it is given again, and after half a
year, when banks are done with it, it counts as lost. What a merchant has to say goes into Mollie's
dashboard.

Source: docs.mollie.com/reference/list-all-chargebacks, /get-chargeback.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Final, NoReturn

from paydesk.adapters.acquirers.disputes import Dispute, DisputePage, DisputeStatus
from paydesk.adapters.acquirers.interface import AcquirerRefused
from paydesk.adapters.acquirers.mollie.calls import Calls, Missing
from paydesk.adapters.acquirers.mollie.looking import Looking, place
from paydesk.adapters.acquirers.mollie.objects import Chargeback, Listed, Payment, moment
from paydesk.adapters.acquirers.mollie.scanning import is_fresh, read_before
from paydesk.core.wording import noted

_REFERENCE: Final = re.compile(r"(tr_[A-Za-z0-9]{1,100})\.(chb_[A-Za-z0-9]{1,100})")
_PAUSE: Final = timedelta(minutes=10)
_AGAIN: Final = timedelta(days=14)
"""How far before the last reading a change is told again: a bank's may be dated back."""
_LOST_AFTER: Final = timedelta(days=183)
_FARTHEST: Final = timedelta(days=550)
"""Older chargebacks are not looked at any more."""


class Disputes:
    """Reads chargebacks."""

    def __init__(self, calls: Calls, looking: Looking, now: Callable[[], datetime]) -> None:
        self._calls: Final = calls
        self._looking: Final = looking
        self._now: Final = now

    async def after(self, cursor: str) -> DisputePage:
        """The chargebacks of our payments that were made or reversed lately, as they stand.
        Moves no money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        now, read_at = self._now(), read_before(cursor)
        if is_fresh(read_at, now, _PAUSE):
            return DisputePage((), cursor)
        told = [
            dispute for one in await self._listed(now - _FARTHEST) if (dispute := self._dispute(one, _payment(one)))
        ]
        new = [one for one in told if read_at is None or one.at >= read_at - _AGAIN]
        return DisputePage(tuple(sorted(new, key=lambda one: one.at)), now.isoformat())

    async def named(self, reference: str) -> Dispute | None:
        """How a chargeback stands, None if Mollie has none of this name. Moves no money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        names = _REFERENCE.fullmatch(reference)
        if names is None:
            return None
        ask = partial(self._calls.sdk.chargebacks.get_async, payment_id=names[1], chargeback_id=names[2])
        try:
            found = await self._calls.ask(ask, Chargeback)
        except Missing:
            return None
        return self._dispute(found, await self._looking.payment(names[1]))

    def refuse_evidence(self) -> NoReturn:
        """Say where a merchant's side is told. Raises: AcquirerRefused."""
        raise AcquirerRefused(noted("Mollie takes a merchant's side in its dashboard only"))

    async def _listed(self, since: datetime) -> list[Chargeback]:
        """All chargebacks since a time. Raises: AcquirerRefused, OutcomeUnknown."""
        found: list[Chargeback] = []
        after = ""
        while True:
            ask = partial(self._calls.sdk.chargebacks.all_async, embed="payment", **place(after))
            part = await self._calls.ask(ask, Listed)
            found += [one for one in part.embedded.chargebacks if moment(one.created_at) >= since]
            if not part.next or moment(part.embedded.chargebacks[-1].created_at) < since:
                return found
            after = part.next

    def _dispute(self, told: Chargeback, payment: Payment | None) -> Dispute | None:
        """A chargeback in our words, None if its payment is not ours."""
        if payment is None or not payment.key:
            return None
        amount, made = told.amount.amount, moment(told.created_at)
        status, at = DisputeStatus.OPEN, made
        if told.reversed_at is not None:
            status, at = DisputeStatus.WON, moment(told.reversed_at)
        elif self._now() > made + _LOST_AFTER:
            status, at = DisputeStatus.LOST, made + _LOST_AFTER
        mark = payment.mark
        return Dispute(
            reference=f"{payment.id}.{told.id}",
            of_key=payment.key,
            amount=amount,
            currency=told.amount.currency,
            reason=(told.reason.description or told.reason.code) if told.reason else "",
            status=status,
            at=at,
            taken=amount,
            returned=amount if told.reversed_at is not None else Decimal(0),
            of_merchant=mark.merchant if mark else "",
        )


def _payment(told: Chargeback) -> Payment | None:
    return told.embedded.payment if told.embedded else None
