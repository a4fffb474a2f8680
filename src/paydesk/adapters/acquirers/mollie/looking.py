"""Finding a payment at Mollie by our idempotency key, which it has no search for.

Its list knows when a payment was made and has our key in the metadata, and does not lag behind. So
what was asked for is among the payments made since then, or never arrived: Mollie's own documents
say to look there. That is read through from the newest one on.

Mollie keeps idempotency keys for an hour. A request that is repeated later is therefore looked for
in the list first.

Source: docs.mollie.com/reference/api-idempotency, docs.mollie.com/reference/list-payments,
    docs.mollie.com/reference/pagination.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from paydesk.adapters.acquirers.interface import Undecided
from paydesk.adapters.acquirers.mollie.calls import Calls
from paydesk.adapters.acquirers.mollie.objects import (
    VOID,
    Chargeback,
    Listed,
    Mandate,
    Payment,
    Refund,
    written,
)

REFERENCE: Final = re.compile(r"tr_[A-Za-z0-9]{1,200}")
PAGE: Final = 250
"""The most that Mollie lists at once."""

FARTHEST: Final = timedelta(days=31)
"""How far back a payment is looked for of which nobody says since when it may be there."""

SKEW: Final = timedelta(minutes=10)
"""By how much clocks may differ."""

_REMEMBERED: Final = 10_000


class Looking:
    """Looks payments and refunds up; remembers which payments stand for which keys,
    to save lists.
    """

    def __init__(self, calls: Calls, now: Callable[[], datetime]) -> None:
        self._calls: Final = calls
        self._now: Final = now
        self._made: Final[OrderedDict[str, str]] = OrderedDict()

    def remember(self, payment: Payment) -> None:
        """Keep which payment a key stands for; the oldest are forgotten."""
        if payment.key:
            self._made[payment.key] = payment.id
            if len(self._made) > _REMEMBERED:
                self._made.popitem(last=False)

    async def payment(self, reference: str) -> Payment | None:
        """A payment by its name at Mollie, None if there is none. Moves no money.

        Raises: OutcomeUnknown.
        """
        if not REFERENCE.fullmatch(reference):
            return None
        found = await self._calls.look(partial(self._calls.sdk.payments.get_async, payment_id=reference), Payment)
        if found is not None:
            self.remember(found)
        return found

    async def under(self, key: str, since: datetime | None = None) -> Payment | None:
        """The payment under a key of ours as it stands, None if none was made since then.
        Moves no money.

        Raises: OutcomeUnknown.
        """
        if key not in self._made:
            async for part in self.payments((since or self._now() - FARTHEST) - SKEW):
                for payment in part:
                    self.remember(payment)
                if key in self._made:
                    break
        reference = self._made.get(key)
        return None if reference is None else await self.payment(reference)

    async def payments(self, since: datetime) -> AsyncIterator[list[Payment]]:
        """All payments since a time, part by part, the newest first. Raises: OutcomeUnknown."""
        after = ""
        while True:
            part = await self._calls.look(partial(self._calls.sdk.payments.list_async, **place(after)), Listed)
            found = part.embedded.payments if part else []
            yield [payment for payment in found if payment.at >= since]
            if part is None or not part.next or not found or found[-1].at < since:
                return
            after = part.next

    async def refunds(self, payment: Payment) -> list[Refund]:
        """All refunds of a payment. Moves no money. Raises: OutcomeUnknown."""
        found: list[Refund] = []
        after = ""
        while True:
            ask = partial(self._calls.sdk.refunds.list_async, payment_id=payment.id, **place(after))
            part = await self._calls.look(ask, Listed) or Listed()
            found += part.embedded.refunds
            if not part.next:
                return found
            after = part.next

    async def chargebacks(self, payment: Payment) -> list[Chargeback]:
        """What banks took back of a payment, as far as there is any. Raises: OutcomeUnknown."""
        if payment.amount_charged_back is None or not payment.amount_charged_back.amount:
            return []
        ask = partial(self._calls.sdk.chargebacks.list_async, payment_id=payment.id, limit=PAGE)
        return (await self._calls.look(ask, Listed) or Listed()).embedded.chargebacks

    async def _has_mandate(self, payment: Payment) -> bool:
        """Whether what was kept for nothing may still be charged. Raises: OutcomeUnknown."""
        get = self._calls.sdk.mandates.get_async
        names = {"customer_id": payment.customer_id, "mandate_id": payment.mandate_id}
        mandate = await self._calls.look(partial(get, **names), Mandate)
        return mandate is not None and mandate.status != "invalid"

    async def is_voided(self, payment: Payment) -> bool:
        """Whether a refund of ours undid a payment.

        Raises: OutcomeUnknown, also while that is under way: it may come to nothing yet.
        """
        # Not by what the payment says was refunded: nobody writes when that begins to count.
        if payment.status != "paid":
            return False
        if payment.kept and not payment.captured:
            return not await self._has_mandate(payment)
        undoing = [one for one in await self.refunds(payment) if one.counts and written(one.metadata, VOID)]
        if any(not one.is_over for one in undoing):
            raise Undecided(f"Mollie is giving {payment.id} back, and has not done so yet")
        return bool(undoing)


def place(after: str) -> dict[str, object]:
    """Where in a list a part begins."""
    return {"limit": PAGE} | ({"from_": after} if after else {})
